/**
 * The cache of the values of counters: each tile holds one series in a range of a power-of-two width, summed up by bin. It
 * asks for the series in sight only, a few at a time, abandons requests that have become useless, and draws with what it
 * has until the wanted tile is there.
 */

import { enclosed } from './enclosed.js';
import { binsFor } from './tiles.js';
import { address, fetchColumns, Latest, unpackColumns } from './wire.js';
import { overlap, tileRange } from './view.js';
/** @import { Range } from './view.js' */
/** @import { Answer } from './wire.js' */

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
    if (enclosed) return this.unpack(visible);
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
      if (ready.has(number) || this.pending.has(number)) continue;
      const url = address('counter', { number, from: range.from, to: range.to, bins: binsFor(width) });
      this.ask(number, range, (signal) => fetchColumns(url, { signal }));
    }
  }

  /** In a page without a server, a series has one tile at most: that of the whole trace. @param {number[]} visible */
  unpack(visible) {
    for (const { number, data } of enclosed?.counters ?? []) {
      const isKnown = this.pending.has(number) || this.tiles.some((tile) => tile.number === number);
      if (visible.includes(number) && !isKnown) this.ask(number, this.bounds, () => unpackColumns(data));
    }
  }

  /** @param {number} number @param {Range} range @param {(signal: AbortSignal) => Promise<Answer>} fetched */
  async ask(number, range, fetched) {
    const mine = { range, latest: new Latest() };
    this.pending.set(number, mine);
    let isBroken = false;
    try {
      const answer = await mine.latest.run(fetched);
      if (!answer) return;
      const points = answer.table('points');
      const [bin, least, most, last] = ['bin', 'least', 'most', 'last'].map((name) => points.numbers(name));
      const { before = null, from, to, bins } = answer.header;
      const covered = { from: BigInt(from), to: BigInt(to) };
      this.tiles.push({ number, range: covered, binTicks: Number(covered.to - covered.from) / bins, before, bin, least, most, last });
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

  /** Lets go of all, where instants mean something else. @param {Range} bounds */
  forget(bounds) {
    for (const { latest } of this.pending.values()) latest.abort();
    this.pending.clear();
    this.tiles = [];
    this.bounds = bounds;
  }

  /** The tiles of a series in the order in which they suit a zoom. @param {number} number @param {number} ticksPerPixel */
  ranked(number, ticksPerPixel) {
    const misfit = (/** @type {CounterTile} */ tile) => Math.abs(Math.log2(tile.binTicks / ticksPerPixel));
    return this.tiles.filter((tile) => tile.number === number).reverse().sort((a, b) => misfit(a) - misfit(b));
  }
}
