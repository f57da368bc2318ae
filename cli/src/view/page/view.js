/**
 * The window of time that is shown. Its left edge is a BigInt origin plus a float of ticks, so that neither 4·10^18 nor
 * zooms below a tick lose precision. Changes run towards a target with exponential easing and can be interrupted by the
 * next one at any moment; with prefers-reduced-motion they happen at once.
 */

import { floorDivide, least, most } from './ticks.js';

/** @typedef {{from: bigint, to: bigint}} Range */
/** @typedef {{origin: bigint, offset: number, span: number}} Window */

const EASING_MILLISECONDS = 70;
const LEAST_SPAN = 4;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

export class View {
  /** @param {Range} bounds what the trace spans @param {() => void} changed */
  constructor(bounds, changed) {
    this.home = homeOf(bounds);
    this.changed = changed;
    this.width = 1000;
    /** @type {Window} */
    this.now = windowOf(this.home);
    /** @type {Window} */
    this.target = this.now;
  }

  /** Takes other bounds. @param {Range} bounds */
  take(bounds) {
    this.home = homeOf(bounds);
  }

  /** The range at the end of the movement. @returns {Range} */
  get range() {
    return rangeOf(this.target);
  }

  get pixelsPerTick() {
    return this.width / this.now.span;
  }

  /** Pixels of an instant. @param {bigint} tick */
  x(tick) {
    return (Number(tick - this.now.origin) - this.now.offset) * this.pixelsPerTick;
  }

  /** The instant below a pixel. @param {number} x @returns {bigint} */
  tick(x) {
    return this.now.origin + BigInt(Math.floor(this.now.offset + x / this.pixelsPerTick));
  }

  /** @param {Range} range @param {boolean} [atOnce] */
  show(range, atOnce = false) {
    this.move(windowOf(range), atOnce);
  }

  /** Shows a range with room around it. @param {Range} range */
  frame(range) {
    const room = most((range.to - range.from) / 3n, 2n);
    this.show({ from: range.from - room, to: range.to + room });
  }

  /** Pans so that the range is visible, and does not zoom unless it must. @param {Range} range */
  reveal(range) {
    const { from, to } = this.range;
    if (range.from >= from && range.to <= to) return;
    const span = to - from;
    if (range.to - range.from > span || (range.to - range.from) * 400n < span) return this.frame(range);
    const middle = (range.from + range.to) / 2n;
    this.show({ from: middle - span / 2n, to: middle - span / 2n + span });
  }

  /** @param {number} pixels @param {boolean} [atOnce] */
  pan(pixels, atOnce = false) {
    const { origin, offset, span } = this.target;
    this.move({ origin, offset: offset + pixels * span / this.width, span }, atOnce);
  }

  /** Zooms by a factor below 1 (in) or above 1 (out), with the instant below pixel x in its place. @param {number} factor @param {number} x @param {boolean} [atOnce] */
  zoom(factor, x, atOnce = false) {
    const { origin, offset, span } = this.target;
    const wider = Math.min(Math.max(span * factor, LEAST_SPAN), Number(this.home.to - this.home.from));
    this.move({ origin, offset: offset + (span - wider) * x / this.width, span: wider }, atOnce);
  }

  /** @param {Window} target @param {boolean} atOnce */
  move(target, atOnce) {
    this.target = this.inside(rebased(target));
    if (atOnce || calm.matches) this.now = this.target;
    this.changed();
  }

  /** Moves on by so many milliseconds; whether there is more to come. @param {number} milliseconds */
  step(milliseconds) {
    if (this.now === this.target) return false;
    const share = 1 - Math.exp(-milliseconds / EASING_MILLISECONDS);
    const { origin, offset, span } = this.target;
    const ahead = Number(this.now.origin - origin) + this.now.offset - offset;
    const left = ahead * (1 - share);
    const wider = this.now.span + (span - this.now.span) * share;
    const pixel = span / this.width;
    const isThere = Math.abs(left) < pixel / 4 && Math.abs(wider - span) < pixel / 2;
    this.now = isThere ? this.target : rebased({ origin, offset: offset + left, span: wider });
    return true;
  }

  /** Keeps the window on the trace and the little room around it. @param {Window} window @returns {Window} */
  inside(window) {
    const { from, to } = this.home;
    const span = Math.min(window.span, Number(to - from));
    const first = Number(from - window.origin);
    const last = Number(to - window.origin) - span;
    return rebased({ origin: window.origin, offset: Math.max(Math.min(window.offset, last), first), span });
  }
}

/** All of the trace with a little room around it. @param {Range} bounds @returns {Range} */
function homeOf({ from, to }) {
  const room = most((to - from) / 50n, 1n);
  return { from: from - room, to: to + room };
}

/** @param {Range} range @returns {Window} */
function windowOf(range) {
  return { origin: range.from, offset: 0, span: Math.max(Number(range.to - range.from), LEAST_SPAN) };
}

/** @param {Window} window @returns {Range} */
function rangeOf({ origin, offset, span }) {
  return { from: origin + BigInt(Math.floor(offset)), to: origin + BigInt(Math.ceil(offset + span)) };
}

/** The same window with an offset below one tick. @param {Window} window @returns {Window} */
function rebased({ origin, offset, span }) {
  const whole = Math.floor(offset);
  return { origin: origin + BigInt(whole), offset: offset - whole, span };
}

/** The part of two ranges that both have; null where there is none. @param {Range} a @param {Range} b @returns {Range | null} */
export function overlap(a, b) {
  const from = most(a.from, b.from);
  const to = least(a.to, b.to);
  return from < to ? { from, to } : null;
}

/**
 * What a tile covers around a range: a window of a power-of-two width, or the whole trace where that is not wider.
 * @param {Range} range @param {Range} bounds of the trace @returns {Range}
 */
export function tileRange(range, bounds) {
  const wanted = (range.to - range.from) * 5n / 4n;
  if (wanted >= bounds.to - bounds.from) return bounds;
  let width = 64n;
  while (width < wanted) width *= 2n;
  const grid = width / 16n;
  const from = floorDivide((range.from + range.to) / 2n - width / 2n, grid) * grid;
  return { from, to: from + width };
}
