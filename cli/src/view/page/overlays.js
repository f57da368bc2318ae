/**
 * What is drawn over the bars: spans of layers, hits of the search, the selected task with arrows to what released it and
 * what it releases, the selected range, marks and the hovered task.
 */

import { LEAST_BAR } from './bars.js';
import { barPlace } from './lanes.js';
import { pixelOf } from './palette.js';
import { STRIP_LINES } from './strips.js';
/** @import { Brush } from './bars.js' */
/** @import { Layout } from './lanes.js' */
/** @import { Tint } from './tints.js' */
/** @import { Range } from './view.js' */

/** @typedef {{lane: number, row: number, start: bigint, finish: bigint}} Spot */
/** @typedef {{y: number, height: number, isCovered: boolean}} Place */
/** Spans for drawing: instants are floats relative to `from`. */
/**
 * @typedef {object} Spans
 * @property {string} title
 * @property {bigint} from
 * @property {bigint | null} total ticks, where they add up to something
 * @property {string} count as the server tells it
 * @property {Uint32Array} lanes
 * @property {Uint16Array} rows
 * @property {Float64Array} starts
 * @property {Float64Array} finishes
 * @property {(bigint | null)[]} tasks
 * @property {(number | null)[]} values
 * @property {string[]} labels
 * @property {Map<bigint, string>} labelOf tasks
 * @property {number[]} names of the tasks, where they are told
 * @property {{least: number, most: number} | null} scale of the values
 * @property {boolean} areTicks whether the values are times
 * @property {boolean} isCut whether there are more
 * @property {boolean} areInstants whether none of them lasts
 */

export const WHOLE_LANE = 65535;
const ARROW = 5;
/** Pixels of a tint that lies below what runs there. */
const LOW = 6;

/** Pixels of a spot: null where its lane is not shown. @param {Layout} layout @param {number} lane @param {number} row */
export function placeOf(layout, lane, row) {
  const place = layout.rowOf.get(lane);
  if (!place) return null;
  if (row === WHOLE_LANE) return covered(layout, place.isPinned, place.top + 1, place.height - 2);
  const { y, height } = barPlace(place, lane, row);
  return covered(layout, place.isPinned, y, height);
}

/** A place, and whether pinned lanes cover it. @param {Layout} layout @param {boolean} isPinned @param {number} y @param {number} height */
function covered(layout, isPinned, y, height) {
  return { y, height, isCovered: !isPinned && y + height / 2 < layout.pinnedHeight };
}

/**
 * Calls back with the rectangle of each span that is visible, those that fall onto the same pixels only once.
 * @param {Brush} brush @param {Layout} layout @param {Spans} spans
 * @param {(x: number, y: number, width: number, height: number, at: number) => void} draw
 */
export function eachVisible({ view, context, ratio }, layout, spans, draw) {
  const origin = view.x(spans.from);
  const scale = view.pixelsPerTick;
  const bottom = context.canvas.height / ratio;
  /** @type {Map<number, Place | null>} */
  const places = new Map();
  let [lastX, lastY] = [NaN, NaN];
  for (let at = 0; at < spans.starts.length; at++) {
    const x = origin + spans.starts[at] * scale;
    if (x > view.width) continue;
    const finish = origin + spans.finishes[at] * scale;
    if (finish < 0) continue;
    const key = spans.lanes[at] * (WHOLE_LANE + 1) + spans.rows[at];
    let place = places.get(key);
    if (place === undefined) {
      place = placeOf(layout, spans.lanes[at], spans.rows[at]);
      if (place && (place.isCovered || place.y > bottom || place.y + place.height < 0)) place = null;
      places.set(key, place);
    }
    if (!place || (Math.round(finish) === lastX && place.y === lastY && finish - x < 1)) continue;
    [lastX, lastY] = [Math.round(finish), place.y];
    const left = Math.max(x, -8);
    draw(left, place.y, Math.max(Math.min(finish, view.width + 8) - left, 2), place.height, at);
  }
}

/** @param {Brush} brush */
function beginStrips({ strips, view, ratio }) {
  strips.begin(Math.round(view.width * ratio));
}

/**
 * Fills a narrow span in its strip.
 * @param {Brush} brush @param {number} x @param {number} y @param {number} width @param {number} height @param {number} colour
 */
function narrow({ strips, ratio }, x, y, width, height, colour) {
  const left = Math.max(Math.round(x * ratio), 0);
  strips.fill(strips.strip(y, height), left, Math.max(Math.round((x + width) * ratio), left + 1), STRIP_LINES, colour);
}

/**
 * Outlines the spans of a path and joins them by a thin line. @param {Brush} brush @param {Layout} layout @param {Spans} spans
 * @param {string} colour
 */
export function drawPath(brush, layout, spans, colour) {
  const { context } = brush;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  const joints = new Path2D();
  beginStrips(brush);
  const runOf = (/** @type {number} */ at) => brush.trace.lanes[spans.lanes[at]]?.run;
  /** Each run has a path of its own. @type {string | undefined} */
  let run;
  eachVisible(brush, layout, spans, (x, y, width, height, at) => {
    if (width < LEAST_BAR) narrow(brush, x, y, width, height, pixelOf(colour));
    else context.strokeRect(x + 0.5, y + 0.5, width - 2, height - 1);
    if (run !== runOf(at)) joints.moveTo(x, y + height / 2);
    else joints.lineTo(x, y + height / 2);
    joints.moveTo(x + width - 1, y + height / 2);
    run = runOf(at);
  });
  brush.strips.paint(context, brush.view.width);
  context.lineWidth = 1;
  context.stroke(joints);
}

/**
 * Tints the spans of a layer; their values give the depth of the tint. @param {Brush} brush @param {Layout} layout @param {Spans} spans
 * @param {Tint} tint
 */
export function drawTint(brush, layout, spans, tint) {
  const { context, colours } = brush;
  eachVisible(brush, layout, spans, (x, y, width, height, at) => {
    const [top, size] = tint.isLow ? [y + height - LOW, LOW] : [y, height];
    // Waits overlap, and are not the deeper for it.
    if (tint.isLow) fill(context, colours.paper, x, top, width, size);
    context.globalAlpha = tint.depthOf(spans.values[at]);
    fill(context, tint.colour, x, top, tint.isLow ? Math.max(width - 1, 1) : width, size);
    context.globalAlpha = 1;
    if (!tint.isLow) context.fillRect(x, y + height - 2, width, 2);
    if (spans.labels[at] && width > 40) drawSpanLabel(context, spans.labels[at], colours.ink, x, y, width, colours.paper);
  });
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} colour @param {number} x @param {number} y @param {number} width
 * @param {number} height
 */
function fill(context, colour, x, y, width, height) {
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} label @param {string} ink @param {number} x @param {number} y @param {number} width
 * @param {string} [ground] where it is to cover other letters
 */
function drawSpanLabel(context, label, ink, x, y, width, ground) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, 17);
  context.clip();
  if (ground) fill(context, ground, Math.max(x, 0) + 2, y + 2, context.measureText(label).width + 4, 13);
  context.fillStyle = ink;
  context.fillText(label, Math.max(x, 0) + 4, y + 12.5);
  context.restore();
}

/** Fills the hits of a search in their own colours, over dimmed bars. @param {Brush} brush @param {Layout} layout @param {Spans} hits */
export function drawHits(brush, layout, hits) {
  const { context, colours } = brush;
  beginStrips(brush);
  eachVisible(brush, layout, hits, (x, y, width, height, at) => {
    const hue = colours.hues[brush.colouring.hueOf(hits.lanes[at], hits.names[at], hits.tasks[at])];
    if (width < LEAST_BAR) return narrow(brush, x, y, width, height, hue.fillPixel);
    context.fillStyle = hue.fill;
    context.fillRect(x, y, width, height);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    if (width > 30) drawSpanLabel(context, hits.labels[at], hue.ink, x, y, width);
  });
  brush.strips.paint(context, brush.view.width);
}

/** Outlines one task. @param {Brush} brush @param {Layout} layout @param {Spot} spot @param {boolean} isSelected else hovered */
export function drawOutline({ context, view, colours }, layout, spot, isSelected) {
  const place = placeOf(layout, spot.lane, spot.row);
  if (!place || place.isCovered) return;
  const x = Math.max(view.x(spot.start), -8);
  const width = Math.max(Math.min(view.x(spot.finish), view.width + 8) - x - 1, 2);
  if (isSelected) {
    context.lineWidth = 4;
    context.strokeStyle = colours.paper;
    context.strokeRect(x - 1, place.y - 1, width + 2, place.height + 2);
  }
  context.lineWidth = isSelected ? 2 : 1;
  context.strokeStyle = isSelected ? colours.accent : colours.ink;
  context.strokeRect(x - (isSelected ? 1 : 0.5), place.y - (isSelected ? 1 : 0.5), width + (isSelected ? 2 : 1), place.height + (isSelected ? 2 : 1));
}

/**
 * An arrow from the finish of one task to the start of another. @param {Brush} brush @param {Layout} layout @param {Spot} source
 * @param {Spot} target @param {boolean} isBack
 */
export function drawArrow({ context, view, colours }, layout, source, target, isBack) {
  const [a, b] = [placeOf(layout, source.lane, source.row), placeOf(layout, target.lane, target.row)];
  if (!a || !b) return;
  const reach = (/** @type {number} */ x) => Math.min(Math.max(x, -1e5), 1e5);
  const middle = (/** @type {typeof a} */ at) => Math.max(at.y + at.height / 2, at.isCovered ? layout.pinnedHeight : -1e4);
  const [x1, y1] = [reach(view.x(source.finish)) - 1, middle(a)];
  const [x2, y2] = [reach(view.x(target.start)), middle(b)];
  const bend = Math.max(Math.min(Math.abs(x2 - x1) / 2, 80), 16);
  context.strokeStyle = context.fillStyle = isBack ? colours.ink : colours.accent;
  context.lineWidth = 1.5;
  context.setLineDash(isBack ? [] : [5, 3]);
  context.beginPath();
  context.moveTo(x1, y1);
  context.bezierCurveTo(x1 + bend, y1, x2 - bend - ARROW, y2, x2 - ARROW, y2);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(x2, y2);
  context.lineTo(x2 - ARROW - 2, y2 - ARROW + 1);
  context.lineTo(x2 - ARROW - 2, y2 + ARROW - 1);
  context.fill();
}

/** Shades what is outside of the selected range. @param {Brush} brush @param {Range} range @param {number} height */
export function drawRange({ context, view, colours }, range, height) {
  const from = Math.max(view.x(range.from), -2);
  const to = Math.min(view.x(range.to), view.width + 2);
  context.fillStyle = colours.veil;
  context.fillRect(0, 0, Math.max(from, 0), height);
  context.fillRect(to, 0, Math.max(view.width - to, 0), height);
  context.fillStyle = colours.accent;
  context.fillRect(Math.round(from) - 1, 0, 1, height);
  context.fillRect(Math.round(to), 0, 1, height);
}

/** @param {Brush} brush @param {bigint[]} marks @param {number} height */
export function drawMarks({ context, view, colours }, marks, height) {
  context.fillStyle = colours.alert;
  for (const mark of marks) context.fillRect(Math.round(view.x(mark)), 0, 1, height);
}
