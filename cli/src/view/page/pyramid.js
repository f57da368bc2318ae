/**
 * The tiles of a page without a server: a few are enclosed, each for all lanes, and finer ones stand for parts of coarser ones.
 * What is wanted is what would be drawn if all were unpacked; where the view is finer than they are, they are stretched.
 */

import { packedTiles } from './enclosed.js';
import { allParts } from './parts.js';
import { decodeTile, piecesOf, Tiles } from './tiles.js';
import { unpackColumns } from './wire.js';
/** @import { PackedTile } from './enclosed.js' */
/** @import { Range } from './view.js' */

export class Pyramid extends Tiles {
  /** Those that could not be unpacked. @type {Set<PackedTile>} */
  broken = new Set();

  /** @param {Range} view @param {number} width in pixels @param {number[]} visible */
  want(view, width, visible) {
    if (this.pending) return;
    // The coarsest first: it is what is seen until others are there.
    const next = [...packedTiles.slice(0, 1), ...fitting(view, width)].find((tile) => !this.broken.has(tile) && !this.has(tile.range, visible));
    if (next) this.unpack(next);
  }

  /** @param {PackedTile} packed */
  async unpack(packed) {
    const { range, data } = packed;
    this.pending = { range, parts: new Set() };
    try {
      this.keep(decodeTile(await unpackColumns(data), range, allParts(this.trace.lanes), this.trace.hues));
    } catch (error) {
      this.broken.add(packed);
      this.failed(error);
    }
    this.pending = null;
    this.arrived();
  }
}

/** The tiles that suit a view, among all. @param {Range} view @param {number} width in pixels @returns {PackedTile[]} */
function fitting(view, width) {
  const scale = width / Number(view.to - view.from);
  const misfit = (/** @type {PackedTile} */ tile) => Math.abs(Math.log2(tile.binTicks * scale));
  const pixels = { width, x: (/** @type {bigint} */ tick) => Number(tick - view.from) * scale };
  // Finer ones have a coarser one above them that fits better.
  const near = packedTiles.filter(({ range, binTicks }) => binTicks * scale > 0.5 && range.from < view.to && range.to > view.from);
  return piecesOf(near.sort((a, b) => misfit(a) - misfit(b)), pixels).map(({ tile }) => tile);
}

/** The finest tile of each part of the trace. @returns {PackedTile[]} */
export function finestTiles() {
  if (!packedTiles.length) return [];
  const { from, to } = packedTiles[0].range;
  const ticks = { width: Number(to - from), x: (/** @type {bigint} */ tick) => Number(tick - from) };
  const pieces = piecesOf([...packedTiles].sort((a, b) => a.binTicks - b.binTicks), ticks);
  return [...new Set(pieces.map(({ tile }) => tile))];
}
