/**
 * The cache of the values of counters: each tile holds one series in a range of a power-of-two width, summed up by bin. It
 * asks for the series in sight only, a few at a time, abandons requests that have become useless, and draws with what it
 * has until the wanted tile is there.
 */

import { binsFor } from './tiles.js';
import { address, fetchColumns, Latest } from './wire.js';
import { overlap, tileRange } from './view.js';
/** @import { Range } from './view.js' */

/**
 * @typedef {object} CounterTile
 * @property {number} number of the series
 * @property {Range} range
 * @property {number} binTicks
 * @property {number | null} before the value where the range begins
 * @property {ArrayLike<number>} bin those that have values, in order
 * @property {ArrayLike<number>} least
 * @property {ArrayLike<number>} most
 * @property {ArrayLike<number>} last
 */

const MOST_COUNTER_TILES = 240;
const MOST_AT_ONCE = 4;

export class Counters {
  /** @param {Range} bounds of the trace @param {() => void} arrived @param {(error: unknown) => void} failed */
  constructor(bounds, arrived, failed) {
    this.bounds = bounds;
    this.arrived = arrived;
    this.failed = failed;
    /** In the order in which they came. @type {CounterTile[]} */
    this.tiles = [];
    /** The requests on their way, by series. @type {Map<number, {range: Range, latest: Latest}>} */
    this.pending = new Map();
  }

  get isLoading() {
    return this.pending.size > 0;
  }

  /** Sees to it that series get their tile of a range. @param {Range} view @param {number} width in pixels @param {number[]} visible */
  want(view, width, visible) {
    const range = tileRange(view, this.bounds);
    const shown = overlap(view, this.bounds);
    if (!shown) return;
    const fits = (/** @type {Range} */ other) =>
      other.to - other.from === range.to - range.from && other.from <= shown.from && other.to >= shown.to;
    for (const [number, { range: asked, latest }] of this.pending) {
      if (visible.includes(number) && fits(asked)) continue;
      latest.abort();
      this.pending.delete(number);
    }
    const ready = new Set(this.tiles.filter((tile) => fits(tile.range)).map((tile) => tile.number));
    for (const number of visible) {
      if (this.pending.size >= MOST_AT_ONCE) return;
      if (!ready.has(number) && !this.pending.has(number)) this.ask(number, range, binsFor(width));
    }
  }

  /** @param {number} number @param {Range} range @param {number} bins */
  async ask(number, range, bins) {
    const mine = { range, latest: new Latest() };
    this.pending.set(number, mine);
    let isBroken = false;
    try {
      const url = address('counter', { number, from: range.from, to: range.to, bins });
      const answer = await mine.latest.run((signal) => fetchColumns(url, { signal }));
      if (!answer) return;
      const points = answer.table('points');
      const [bin, least, most, last] = ['bin', 'least', 'most', 'last'].map((name) => points.numbers(name));
      const before = answer.header.before ?? null;
      this.tiles.push({ number, range, binTicks: Number(range.to - range.from) / bins, before, bin, least, most, last });
      if (this.tiles.length > MOST_COUNTER_TILES) this.tiles.shift();
    } catch (error) {
      isBroken = true;
      this.failed(error);
    } finally {
      if (this.pending.get(number) === mine) {
        this.pending.delete(number);
        if (!isBroken) this.arrived();
      }
    }
  }

  /** The tiles of a series in the order in which they suit a zoom. @param {number} number @param {number} ticksPerPixel */
  ranked(number, ticksPerPixel) {
    const misfit = (/** @type {CounterTile} */ tile) => Math.abs(Math.log2(tile.binTicks / ticksPerPixel));
    return this.tiles.filter((tile) => tile.number === number).reverse().sort((a, b) => misfit(a) - misfit(b));
  }
}
