/**
 * Layers of instants, such as the events of a trace: a thin line with a small diamond on its location, over all of them
 * where it has none; and the one near a pixel.
 */

import { eachVisible, placeOf } from './overlays.js';
/** @import { Brush } from './bars.js' */
/** @import { Layout } from './lanes.js' */
/** @import { Layer } from './layers.js' */
/** @import { Spans } from './overlays.js' */
/** @import { View } from './view.js' */

/** @typedef {{kind: 'instant', lane: number, label: string, at: bigint}} InstantHit */

const DIAMOND = 4;
const REACH = 5;
const FAINT = 0.3;
/** Of what belongs to no location. */
const NO_LANE = 4294967295;

/** @param {Brush} brush @param {Layout} layout @param {Spans} spans @param {string} colour */
export function drawInstants(brush, layout, spans, colour) {
  const { context, view, ratio } = brush;
  const diamonds = new Path2D();
  context.fillStyle = colour;
  /** The pixel of the one before, by height: many in a row are faint, so that what is below them is seen. @type {Map<number, number>} */
  const before = new Map();
  let alpha = 1;
  const draw = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ height, /** @type {number} */ middle) => {
    const at = Math.round(x);
    const other = before.get(middle);
    if (other === at) return;
    const isNear = other !== undefined && Math.abs(at - other) < 2 * DIAMOND;
    context.globalAlpha = isNear ? FAINT : alpha;
    context.fillRect(at, y, 1, height);
    if (!isNear) addDiamond(diamonds, at + 0.5, middle);
    before.set(middle, at);
  };
  eachVisible(brush, layout, spans, (x, y, _, height) => draw(x, y, height, y + height / 2));
  alpha = 0.5;
  spans.lanes.forEach((lane, at) => {
    const x = lane === NO_LANE ? xOf(view, spans, at) : -1;
    if (x >= 0 && x <= view.width) draw(x, layout.pinnedHeight, context.canvas.height / ratio, layout.pinnedHeight + DIAMOND + 1);
  });
  context.globalAlpha = 1;
  context.fill(diamonds);
}

/** @param {Path2D} path @param {number} x @param {number} y */
function addDiamond(path, x, y) {
  path.moveTo(x, y - DIAMOND);
  path.lineTo(x + DIAMOND, y);
  path.lineTo(x, y + DIAMOND);
  path.lineTo(x - DIAMOND, y);
  path.closePath();
}

/** @param {View} view @param {Spans} spans @param {number} at */
function xOf(view, { from, starts }, at) {
  return view.x(from) + starts[at] * view.pixelsPerTick;
}

/** The instant nearest to a pixel. @param {View} view @param {Layout} layout @param {Layer[]} layers @param {number} x @param {number} y @returns {InstantHit | null} */
export function hitInstant(view, layout, layers, x, y) {
  /** @type {InstantHit | null} */
  let found = null;
  let nearest = REACH;
  for (const { spans } of layers.filter((layer) => layer.spans.areInstants)) {
    for (let at = 0; at < spans.starts.length; at++) {
      const away = Math.abs(xOf(view, spans, at) - x);
      if (away >= nearest || !isAt(layout, spans, at, y)) continue;
      nearest = away;
      found = { kind: 'instant', lane: spans.lanes[at], label: spans.labels[at], at: spans.from + BigInt(spans.starts[at]) };
    }
  }
  return found;
}

/** @param {Layout} layout @param {Spans} spans @param {number} at @param {number} y */
function isAt(layout, { lanes, rows }, at, y) {
  if (lanes[at] === NO_LANE) return y >= layout.pinnedHeight && y < layout.pinnedHeight + 2 * DIAMOND + 2;
  const place = placeOf(layout, lanes[at], rows[at]);
  return place !== null && !place.isCovered && place.y <= y && y < place.y + place.height;
}
