/**
 * Draws one series of a counter as a strip: a line in steps (a value holds until the next one), light filling below it, and
 * a band from the least to the greatest value where several fall into a bin. Also finds the value at a pixel.
 */

/** @import { Brush } from './bars.js' */
/** @import { CounterTile } from './counters.js' */
/** @import { LaneRow } from './lanes.js' */
/** @import { Series } from './series.js' */
/** @import { Piece } from './tiles.js' */
/** @import { View } from './view.js' */

/** @typedef {(value: number) => number} Scale the pixel of a value */
/** @typedef {{area: Path2D, band: Path2D, line: Path2D}} StepPaths */
/** @typedef {{kind: 'counter', series: Series, value: number, least: number, most: number, at: bigint}} CounterHit */

const STRIP_ROOM = 4;
const DOT = 3;
/** A little more than a pixel: browsers draw hairlines with gaps. */
const LINE = 1.05;

/**
 * From the least value at the bottom to the greatest at the top; one value alone lies in the middle.
 * @param {LaneRow} row @param {Series} series @returns {Scale}
 */
function scaleOf(row, { least, most }) {
  const bottom = row.top + row.height - STRIP_ROOM;
  const height = row.height - 2 * STRIP_ROOM;
  const span = most - least;
  return (value) => Math.round(bottom - height * (span > 0 ? (value - least) / span : value === 0 ? 0 : 0.5)) + 0.5;
}

/** @param {Brush} brush @param {LaneRow} row @param {Series} series @param {Piece<CounterTile>[]} pieces */
export function drawCounter(brush, row, series, pieces) {
  const { context, colours } = brush;
  const scale = scaleOf(row, series);
  const paths = { area: new Path2D(), band: new Path2D(), line: new Path2D() };
  for (const piece of pieces) addSteps(brush, paths, piece, scale, row.top + row.height - 1);
  context.fillStyle = context.strokeStyle = colours.series;
  context.globalAlpha = 0.16;
  context.fill(paths.area);
  context.globalAlpha = 0.36;
  context.fill(paths.band);
  context.globalAlpha = 1;
  context.lineWidth = LINE;
  context.stroke(paths.line);
}

/**
 * Adds what one tile knows. Bins on the same pixel of the device become one step.
 * @param {Brush} brush @param {StepPaths} paths @param {Piece<CounterTile>} piece @param {Scale} scale @param {number} bottom
 */
function addSteps({ view, ratio }, paths, piece, scale, bottom) {
  const { tile } = piece;
  const { bin, least, most, last } = tile;
  const [left, right] = [piece.left, piece.right].map((x) => Math.round(x * ratio) / ratio);
  const origin = view.x(tile.range.from);
  const width = tile.binTicks * view.pixelsPerTick;
  const start = (/** @type {number} */ at) => Math.max(Math.round((origin + bin[at] * width) * ratio) / ratio, left);
  let at = firstBin(bin, (left - origin) / width);
  let held = at > 0 ? last[at - 1] : tile.before;
  let isBegun = false;
  const reach = (/** @type {number} */ x, /** @type {number} */ value) => {
    if (!isBegun) {
      paths.area.moveTo(x, bottom);
      paths.line.moveTo(x, scale(value));
    }
    isBegun = true;
    paths.area.lineTo(x, scale(value));
    paths.line.lineTo(x, scale(value));
  };
  if (held !== null) reach(left, held);
  while (at < bin.length && start(at) < right) {
    const x = start(at);
    let [low, high] = [least[at], most[at]];
    if (held !== null) reach(x, held);
    for (held = last[at++]; at < bin.length && start(at) === x; held = last[at++]) {
      low = Math.min(low, least[at]);
      high = Math.max(high, most[at]);
    }
    if (low < high) paths.band.rect(x, scale(high), Math.max(Math.min(width, right - x), 1 / ratio), scale(low) - scale(high));
    reach(x, held);
  }
  if (held === null) return;
  reach(right, held);
  paths.area.lineTo(right, bottom);
}

/** The first bin that ends behind a place that is measured in bins. @param {ArrayLike<number>} bin @param {number} place */
function firstBin(bin, place) {
  let [low, high] = [0, bin.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bin[middle] + 1 > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The value of a series at a pixel; null where it has none yet.
 * @param {View} view @param {Series} series @param {Piece<CounterTile>[]} pieces @param {number} x @returns {CounterHit | null}
 */
export function hitCounter(view, series, pieces, x) {
  const piece = pieces.find(({ left, right }) => left <= x && x < right);
  if (!piece) return null;
  const { tile } = piece;
  const place = (x - view.x(tile.range.from)) / view.pixelsPerTick / tile.binTicks;
  const at = firstBin(tile.bin, place);
  const isInside = at < tile.bin.length && tile.bin[at] <= place;
  const value = isInside ? tile.last[at] : at > 0 ? tile.last[at - 1] : tile.before;
  if (value === null) return null;
  return { kind: 'counter', series, value, least: isInside ? tile.least[at] : value, most: isInside ? tile.most[at] : value, at: view.tick(x) };
}

/** Marks the value below the pointer. @param {Brush} brush @param {LaneRow} row @param {CounterHit} hit */
export function drawDot({ context, view, colours }, row, hit) {
  context.beginPath();
  context.arc(view.x(hit.at), scaleOf(row, hit.series)(hit.value), DOT, 0, 2 * Math.PI);
  context.fillStyle = colours.ink;
  context.fill();
  context.strokeStyle = colours.paper;
  context.lineWidth = 1;
  context.stroke();
}
