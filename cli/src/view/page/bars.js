/**
 * Draws some rows of tasks of a lane onto the canvas: bars with a gap of one pixel and a label where it fits, and bins of summed
 * short tasks as columns, as high as they were busy, in the softened colour of the name that took most. Also finds what
 * lies below a pixel.
 */

import { barPlace } from './lanes.js';
import { OWN_LAYER } from './layers.js';
import { firstRow, laneOf, rowsOf } from './parts.js';
import { STRIP_LINES } from './strips.js';
/** @import { Colouring } from './colouring.js' */
/** @import { LaneRow } from './lanes.js' */
/** @import { Colours } from './palette.js' */
/** @import { Strips } from './strips.js' */
/** @import { Segment } from './tiles.js' */
/** @import { Trace } from './trace.js' */
/** @import { View } from './view.js' */

/** @typedef {{context: CanvasRenderingContext2D, view: View, trace: Trace, colours: Colours, colouring: Colouring, labels: Map<bigint, string>, ratio: number, strips: Strips}} Brush */
/** @typedef {{y: number, height: number, isShown: boolean, strip: number}} BarRow where a row of tasks is drawn; its strip, once it has one */
/** @typedef {{kind: 'task', lane: number, row: number, task: bigint, name: number, start: bigint, finish: bigint}} TaskHit */
/** @typedef {{kind: 'sum', lane: number, row: number, name: number, count: number, busy: number, share: number}} SumHit */

export const LABEL_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const LEAST_LABEL = 26;
/** Narrower bars are drawn as pixels. */
export const LEAST_BAR = 8;
/** @type {Map<string, number>} */
const labelWidths = new Map();

/** @param {Brush} brush @param {LaneRow} place @param {number} part of a lane @param {Segment[]} segments @returns {boolean} whether sums were drawn */
export function drawPart(brush, place, part, segments) {
  let hasSums = false;
  const lane = laneOf(part);
  const first = firstRow(part);
  /** @type {Map<number, BarRow>} */
  const places = new Map(Array.from({ length: rowsOf(brush.trace.lanes, part) }, (_, at) => [first + at, { ...barPlace(place, lane, first + at), strip: -1 }]));
  for (const segment of segments) hasSums = drawSums(brush, lane, places, segment) || hasSums;
  /** Tasks of several segments: one bar each. @type {Set<bigint>} */
  const drawn = new Set();
  for (const segment of segments) drawTasks(brush, lane, places, segment, drawn);
  return hasSums;
}

/** @param {Brush} brush @param {number} lane @param {Map<number, BarRow>} places by row @param {Segment} segment @param {Set<bigint>} drawn */
function drawTasks(brush, lane, places, segment, drawn) {
  const { view, trace, colours, colouring, labels, ratio, strips } = brush;
  const { rows, starts, finishes, names, tasks } = segment.part;
  const hues = colouring.huesOf(segment.part, lane);
  const showsLabels = colouring.shows(OWN_LAYER);
  const { left, right } = segment;
  const origin = view.x(segment.tile.range.from);
  const scale = view.pixelsPerTick;
  for (let at = 0; at < rows.length; at++) {
    const [from, to] = [origin + starts[at] * scale, origin + finishes[at] * scale];
    const place = places.get(rows[at]);
    if (to < left || from > right || !place?.isShown) continue;
    if (from < left || to > right) {
      if (drawn.has(tasks[at])) continue;
      drawn.add(tasks[at]);
    }
    const [start, finish] = [Math.max(from, 0), Math.min(to, view.width)];
    if (finish < start) continue;
    if (finish - start < LEAST_BAR) {
      const x = Math.round(start * ratio);
      const gap = finish - start > 2.5 ? ratio : 0;
      const strip = place.strip < 0 ? (place.strip = strips.strip(place.y, place.height)) : place.strip;
      strips.fill(strip, x, Math.max(Math.round(finish * ratio - gap), x + 1), STRIP_LINES, colours.hues[hues[at]].fillPixel);
    } else {
      const width = drawBar(brush, start, finish, place, colours.hues[hues[at]].fill);
      if (width < LEAST_LABEL || place.height < 12) continue;
      const label = labels.get(tasks[at]);
      // A layer that is drawn above the bars brings its own.
      if (label && !showsLabels) continue;
      const duration = trace.clock.text(finishes[at] - starts[at]);
      drawLabel(brush, label ?? trace.nameOf(names[at]), duration, start, place.y, width, colours.hues[hues[at]].ink);
    }
  }
}

/**
 * @param {Brush} brush @param {number} start @param {number} finish @param {BarRow} place @param {string} colour
 * @returns {number} the width
 */
function drawBar({ context, ratio }, start, finish, { y, height }, colour) {
  const x = Math.round(start * ratio) / ratio;
  const width = Math.round(finish * ratio) / ratio - x - 1;
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(x, y, width, height, height < LEAST_BAR ? 0 : 2);
  context.fill();
  return width;
}

/**
 * @param {Brush} brush @param {string} name @param {string} duration @param {number} x @param {number} y @param {number} width
 * @param {string} ink
 */
function drawLabel({ context }, name, duration, x, y, width, ink) {
  const room = width - 8;
  const size = textWidth(context, name);
  context.fillStyle = ink;
  if (size > room) {
    const letters = Math.floor(name.length * (room - 9) / size);
    if (letters >= 2) context.fillText(`${name.slice(0, letters)}…`, x + 4, y + 12.5);
    return;
  }
  context.fillText(name, x + 4, y + 12.5);
  if (size + 12 + textWidth(context, duration) > room) return;
  context.globalAlpha *= 0.72;
  context.fillText(duration, x + 4 + size + 8, y + 12.5);
  context.globalAlpha /= 0.72;
}

/** @param {CanvasRenderingContext2D} context @param {string} text */
function textWidth(context, text) {
  let width = labelWidths.get(text);
  if (width === undefined) {
    if (labelWidths.size > 20000) labelWidths.clear();
    width = context.measureText(text).width;
    labelWidths.set(text, width);
  }
  return width;
}

/** @param {Brush} brush @param {number} lane @param {Map<number, BarRow>} places by row @param {Segment} segment @returns {boolean} whether there were any */
function drawSums(brush, lane, places, segment) {
  const { colours, colouring, ratio, strips } = brush;
  const { bin, busy, name } = segment.tile.sums;
  const { origin, width } = binGeometry(brush.view, segment);
  const { left, right } = segment;
  let isAny = false;
  for (const { row, first, count, offset } of segment.part.groups) {
    const place = places.get(row);
    if (!place?.isShown) continue;
    if (place.strip < 0) place.strip = strips.strip(place.y, place.height);
    for (let at = first; at < first + count; at++) {
      const start = Math.max(origin + (bin[at] + offset) * width, left);
      const finish = Math.min(origin + (bin[at] + offset + 1) * width, right);
      if (finish <= start) continue;
      const x = Math.round(start * ratio);
      const lines = Math.max(Math.round(Math.min(busy[at], 1) * STRIP_LINES), 1);
      strips.fill(place.strip, x, Math.max(Math.round(finish * ratio), x + 1), lines, colours.hues[colouring.hueOf(lane, name[at], null)].softPixel);
      isAny = true;
    }
  }
  return isAny;
}

/** @param {View} view @param {Segment} segment */
function binGeometry(view, segment) {
  return { origin: view.x(segment.tile.range.from), width: segment.tile.binTicks * view.pixelsPerTick };
}

/**
 * What a lane shows at a pixel.
 * @param {View} view @param {Segment[]} segments @param {number} lane @param {number} row @param {number} x
 * @returns {TaskHit | SumHit | null}
 */
export function hitLane(view, segments, lane, row, x) {
  const segment = segments.find(({ left, right }) => left <= x && x < right);
  if (!segment) return null;
  return hitTask(view, segment, lane, row, x) ?? hitSum(view, segment, lane, row, x);
}

/** @param {View} view @param {Segment} segment @param {number} lane @param {number} row @param {number} x @returns {TaskHit | null} */
function hitTask(view, segment, lane, row, x) {
  const ticks = (x - view.x(segment.tile.range.from)) / view.pixelsPerTick;
  const near = 1.5 / view.pixelsPerTick;
  const { rows, starts, finishes } = segment.part;
  for (let at = 0; at < rows.length; at++) {
    if (rows[at] === row && starts[at] <= ticks && ticks < Math.max(finishes[at], starts[at] + near)) return taskAt(segment, lane, at);
  }
  return null;
}

/** @param {Segment} segment @param {number} lane @param {number} at @returns {TaskHit} */
function taskAt({ tile, part }, lane, at) {
  const { from } = tile.range;
  return {
    kind: 'task', lane, row: part.rows[at], task: part.tasks[at], name: part.names[at],
    start: from + BigInt(part.starts[at]), finish: from + BigInt(part.finishes[at]),
  };
}

/** @param {View} view @param {Segment} segment @param {number} lane @param {number} row @param {number} x @returns {SumHit | null} */
function hitSum(view, segment, lane, row, x) {
  const { origin, width } = binGeometry(view, segment);
  const { bin, busy, count, name, share } = segment.tile.sums;
  for (const group of segment.part.groups) {
    if (group.row !== row) continue;
    const wanted = Math.floor((x - origin) / width - group.offset);
    for (let at = group.first; at < group.first + group.count; at++) {
      if (bin[at] === wanted) return { kind: 'sum', lane, row, name: name[at], count: count[at], busy: busy[at], share: share[at] };
    }
  }
  return null;
}

/**
 * The tasks of a part of a lane that tiles show one by one, in order of start.
 * @param {Segment[]} segments @param {number} lane @returns {TaskHit[]}
 */
export function tasksShown(segments, lane) {
  const all = segments.flatMap((segment) => Array.from(segment.part.rows, (_, at) => taskAt(segment, lane, at)));
  const once = [...new Map(all.map((hit) => [hit.task, hit])).values()];
  return once.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
}
