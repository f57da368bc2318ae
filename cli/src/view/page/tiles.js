/**
 * The cache of tiles: what is to be drawn of parts of lanes in a range of a power-of-two width, a little more than is visible.
 * Until a wanted tile is there the best others are drawn in its place, stretched. One request is in flight; it is abandoned
 * when it has become useless. Instants in a tile are floats relative to its start, so that drawing needs no BigInt.
 */

import { askFor, partOf, rowsOf } from './parts.js';
import { address, fetchColumns, Latest } from './wire.js';
import { overlap, tileRange } from './view.js';
/** @import { Trace } from './trace.js' */
/** @import { Range, View } from './view.js' */
/** @import { Answer, Table } from './wire.js' */

/**
 * @typedef {{row: number, first: number, count: number, offset: number}} SumGroup bins of one row: a part of the tile's table of
 *   bins, and how many bins later than those of the tile they begin
 */
/**
 * @typedef {{rows: Uint16Array, starts: Float64Array, finishes: Float64Array, names: Uint32Array, hues: Uint8Array,
 *   tasks: BigInt64Array, groups: SumGroup[]}} PartTile
 */
/** @typedef {{bin: ArrayLike<number>, count: ArrayLike<number>, busy: ArrayLike<number>, name: ArrayLike<number>, share: ArrayLike<number>}} Sums */
/** @typedef {{asked: Range, range: Range, binTicks: number, parts: Map<number, PartTile>, sums: Sums}} Tile what was asked for, and what is there */
/** @template T @typedef {{tile: T, left: number, right: number}} Piece what one tile draws, between two pixels */
/** @typedef {Piece<Tile> & {part: PartTile}} Segment the same of one part of a lane */

const MOST_TILES = 120;
const MOST_BINS = 4096;
/** Rows times bins of a request: an answer of dense ones stays below 200 kB. */
const MOST_CELLS = 12 * 1280;

export class Tiles {
  /** @param {Trace} trace @param {() => void} arrived @param {(error: unknown) => void} failed */
  constructor(trace, arrived, failed) {
    this.trace = trace;
    this.arrived = arrived;
    this.failed = failed;
    this.latest = new Latest();
    /** The most recently used one last. @type {Tile[]} */
    this.tiles = [];
    /** @type {{range: Range, parts: Set<number>} | null} */
    this.pending = null;
    this.isBroken = false;
  }

  get isLoading() {
    return this.pending !== null;
  }

  /**
   * Sees to it that parts of lanes get their tile of a range. @param {Range} view @param {number} width in pixels @param {number[]} visible
   * @param {number[]} near
   */
  want(view, width, visible, near) {
    const range = tileRange(view, this.trace.bounds);
    const missing = visible.filter((part) => !this.has(range, [part]));
    if (!missing.length || (this.pending && this.isOfUse(view, missing))) return;
    const bins = binsFor(width);
    this.ask(range, bins, this.firstOf([...new Set([...missing, ...near])], bins));
  }

  /** As many parts as one request asks for. @param {number[]} parts @param {number} bins @returns {number[]} in order */
  firstOf(parts, bins) {
    let rows = 0;
    const fits = parts.findIndex((part, at) => (rows += rowsOf(this.trace.lanes, part)) * bins > MOST_CELLS && at > 0);
    return (fits < 0 ? parts : parts.slice(0, fits)).sort((a, b) => a - b);
  }

  /** @param {Range} range @param {number[]} parts */
  has(range, parts) {
    const same = this.tiles.filter((tile) => tile.asked.from === range.from && tile.asked.to === range.to);
    return parts.every((part) => same.some((tile) => tile.parts.has(part)));
  }

  /** Whether the request in flight is still worth waiting for. @param {Range} view @param {number[]} missing */
  isOfUse(view, missing) {
    if (!this.pending) return false;
    const { range, parts } = this.pending;
    const wanted = tileRange(view, this.trace.bounds);
    const both = overlap(range, view);
    const isNear = both !== null && (both.to - both.from) * 2n >= view.to - view.from;
    return range.to - range.from === wanted.to - wanted.from && isNear && missing.some((part) => parts.has(part));
  }

  /** @param {Range} range @param {number} bins @param {number[]} parts */
  async ask(range, bins, parts) {
    const mine = { range, parts: new Set(parts) };
    this.pending = mine;
    this.isBroken = false;
    try {
      const url = address('tile', { from: range.from, to: range.to, bins, lanes: askFor(this.trace.lanes, parts) });
      const answer = await this.latest.run((signal) => fetchColumns(url, { signal }));
      if (!answer) return;
      this.keep(decodeTile(answer, range, parts, this.trace.hues));
    } catch (error) {
      this.failed(error);
      this.isBroken = true;
    } finally {
      if (this.pending === mine) {
        this.pending = null;
        if (!this.isBroken) this.arrived();
      }
    }
  }

  /** Lets go of all, where instants mean something else. */
  forget() {
    this.latest.abort();
    this.pending = null;
    this.tiles = [];
  }

  /** Keeps a tile, and lets go of an older one where there are many. @param {Tile} tile */
  keep(tile) {
    this.tiles.push(tile);
    if (this.tiles.length > MOST_TILES) this.tiles.splice(1, 1);
  }

  /** The tiles in the order in which they suit a zoom. @param {number} ticksPerPixel @returns {Tile[]} */
  ranked(ticksPerPixel) {
    const misfit = (/** @type {Tile} */ tile) => Math.abs(Math.log2(tile.binTicks / ticksPerPixel));
    return [...this.tiles].reverse().sort((a, b) => misfit(a) - misfit(b));
  }
}

/** Which tiles draw a part of a lane. @param {Tile[]} ranked @param {number} part @param {View} view @returns {Segment[]} */
export function segmentsOf(ranked, part, view) {
  const those = ranked.filter((tile) => tile.parts.has(part));
  return piecesOf(those, view).map((piece) => ({ ...piece, part: /** @type {PartTile} */ (piece.tile.parts.get(part)) }));
}

/**
 * Which tiles draw from pixel 0 to `width`: each pixel by the first that has it.
 * @template {{range: Range}} T @param {T[]} ranked @param {Pick<View, 'x' | 'width'>} view @returns {Piece<T>[]}
 */
export function piecesOf(ranked, view) {
  /** @type {Piece<T>[]} */
  const found = [];
  let open = [[0, view.width]];
  for (const tile of ranked) {
    const from = view.x(tile.range.from);
    const to = view.x(tile.range.to);
    open = open.flatMap(([left, right]) => {
      const [a, b] = [Math.max(left, from), Math.min(right, to)];
      if (a >= b) return [[left, right]];
      found.push({ tile, left: a, right: b });
      return [[left, a], [b, right]].filter(([start, stop]) => stop - start > 0.5);
    });
    if (!open.length) break;
  }
  return found;
}

/** @param {number} width in pixels */
export function binsFor(width) {
  return Math.min(Math.max(Math.ceil(width / 256), 1) * 256, MOST_BINS);
}

/**
 * @param {Answer} answer @param {Range} asked @param {number[]} parts @param {Uint8Array} hues
 * @returns {Tile}
 */
export function decodeTile(answer, asked, parts, hues) {
  // It covers what was asked for, and may reach out of it.
  const range = { from: BigInt(answer.header.from), to: BigInt(answer.header.to) };
  const single = tasksByPart(answer.table('tasks'), range.from, hues);
  const groups = groupsByPart(answer.table('groups'));
  const nothing = {
    rows: new Uint16Array(), starts: new Float64Array(), finishes: new Float64Array(), names: new Uint32Array(),
    hues: new Uint8Array(), tasks: new BigInt64Array(),
  };
  const sums = answer.table('bins');
  const numbers = (/** @type {string} */ name) => sums.numbers(name);
  return {
    asked,
    range,
    // Fewer bins than were asked for where they would be shorter than a tick.
    binTicks: Number(range.to - range.from) / answer.header.bins,
    parts: new Map(parts.map((part) => [part, { ...(single.get(part) ?? nothing), groups: groups.get(part) ?? [] }])),
    sums: { bin: numbers('bin'), count: numbers('count'), busy: numbers('busy'), name: numbers('name'), share: numbers('share') },
  };
}

/**
 * The tasks of each part. @param {Table} table @param {bigint} from
 * @param {Uint8Array} hues
 */
function tasksByPart(table, from, hues) {
  const [lane, row, name] = ['lane', 'row', 'name'].map((column) => table.numbers(column));
  const [start, finish, task] = ['start', 'finish', 'task'].map((column) => table.bigints(column));
  /** @type {Map<number, number[]>} */
  const members = new Map();
  for (let at = 0; at < table.rows; at++) {
    const part = partOf(lane[at], row[at]);
    const others = members.get(part);
    if (others) others.push(at);
    else members.set(part, [at]);
  }
  return new Map([...members].map(([number, list]) => {
    return [number, {
      rows: Uint16Array.from(list, (at) => row[at]), names: Uint32Array.from(list, (at) => name[at]),
      hues: Uint8Array.from(list, (at) => hues[name[at]]),
      starts: Float64Array.from(list, (at) => Number(start[at] - from)), finishes: Float64Array.from(list, (at) => Number(finish[at] - from)),
      tasks: BigInt64Array.from(list, (at) => task[at]),
    }];
  }));
}

/** @param {Table} table @returns {Map<number, SumGroup[]>} */
function groupsByPart(table) {
  const [lane, row, count, offset] = ['lane', 'row', 'bins', 'offset'].map((column) => table.numbers(column));
  /** @type {Map<number, SumGroup[]>} */
  const groups = new Map();
  for (let at = 0, first = 0; at < table.rows; first += count[at++]) {
    const part = partOf(lane[at], row[at]);
    const others = groups.get(part) ?? [];
    groups.set(part, [...others, { row: row[at], first, count: count[at], offset: offset[at] }]);
  }
  return groups;
}
