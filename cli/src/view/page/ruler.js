/**
 * The ruler above the lanes: ticks of time in steps of 1, 2 or 5, the length of the selected range, and marks. Deep in a
 * long trace the common part of the times stands once at the left (`1.2345 s +`) and the ticks count from there.
 */

import { floorDivide, rulerStep } from './ticks.js';
/** @import { Brush } from './bars.js' */
/** @import { Shared } from './state.js' */
/** @import { Range, View } from './view.js' */

/** @typedef {{step: bigint, base: bigint}} Scale */

export const RULER_HEIGHT = 34;
const LEAST_GAP = 96;
const MOST_DIGITS = 100000n;

/** @param {View} view @returns {Scale} the step of the ticks, and what their labels count from */
export function rulerScale(view) {
  const step = rulerStep(Math.max(view.now.span * LEAST_GAP / view.width, 1));
  const from = view.tick(0);
  const isDeep = (from < 0n ? -from : from) > step * MOST_DIGITS;
  const coarse = step * 100n;
  return { step, base: isDeep ? floorDivide(from, coarse) * coarse : 0n };
}

/** Calls back with each tick of the ruler that is visible. @param {View} view @param {bigint} step @param {(x: number, tick: bigint) => void} draw */
export function eachTick(view, step, draw) {
  const last = view.tick(view.width) + step;
  for (let tick = floorDivide(view.tick(0), step) * step; tick <= last; tick += step) draw(view.x(tick), tick);
}

/** @param {Brush} brush @param {Shared} state */
export function drawRuler(brush, state) {
  const { context, view, colours, trace } = brush;
  const { step, base } = rulerScale(view);
  context.clearRect(0, 0, view.width, RULER_HEIGHT);
  context.fillStyle = colours.pale;
  const hasBase = base !== 0n;
  const plus = hasBase ? '+' : '';
  eachTick(view, step, (x, tick) => {
    context.fillRect(Math.round(x), RULER_HEIGHT - 8, 1, 8);
    if (x > -4) context.fillText(`${plus}${trace.clock.instant(tick - base, step)}`, Math.round(x) + 5, RULER_HEIGHT - 6);
  });
  if (step >= 10n) eachTick(view, step / 5n, (x) => context.fillRect(Math.round(x), RULER_HEIGHT - 3, 1, 3));
  if (hasBase) drawChip(brush, `${trace.clock.instant(base, step)} +`, 0, colours.band, colours.ink);
  if (state.range) drawRangeLength(brush, state.range);
  state.marks.forEach((mark, at) => drawChip(brush, String(at + 1), view.x(mark), colours.alert, colours.paper));
}

/** @param {Brush} brush @param {Range} range */
function drawRangeLength(brush, range) {
  const { view, context, colours, trace } = brush;
  const [from, to] = [Math.max(view.x(range.from), 0), Math.min(view.x(range.to), view.width)];
  if (to <= from) return;
  context.fillStyle = colours.accent;
  context.fillRect(from, RULER_HEIGHT - 2, to - from, 2);
  const label = trace.clock.text(range.to - range.from);
  const width = context.measureText(label).width + 8;
  drawChip(brush, label, Math.min(Math.max((from + to - width) / 2, 0), view.width - width), colours.accent, colours.paper);
}

/**
 * A label on a coloured ground, at the top. @param {Brush} brush @param {string} label @param {number} x @param {string} ground
 * @param {string} ink
 */
function drawChip({ context }, label, x, ground, ink) {
  const width = context.measureText(label).width + 8;
  context.fillStyle = ground;
  context.beginPath();
  context.roundRect(x, 1, width, 14, 3);
  context.fill();
  context.fillStyle = ink;
  context.fillText(label, x + 4, 12);
}
