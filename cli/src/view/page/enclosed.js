/**
 * The data of a page without a server: `tq report` writes what the page would ask for into a block of the document. Null
 * where there is no such block, which is the page of `tq view`. Each part is packed and is unpacked when it is asked for.
 */

import { parseTicks } from './ticks.js';

/** @typedef {{from: string, to: string, bins?: number, data: string}} TileText */
/** @typedef {{answers: Record<string, string>, tiles: TileText[], counters?: {number: number, data: string}[], detail?: string}} Enclosed */
/** @typedef {{range: {from: bigint, to: bigint}, binTicks: number, data: string}} PackedTile a tile of all lanes */

const USUAL_BINS = 1024;
const block = document.getElementById('tq-data');

/** @type {Enclosed | null} */
export const enclosed = block && JSON.parse(block.textContent ?? '');

/** From coarse to fine: the whole trace, then parts of it. @type {PackedTile[]} */
export const packedTiles = (enclosed?.tiles ?? []).map(({ from, to, bins = USUAL_BINS, data }) => {
  const range = { from: parseTicks(from) ?? 0n, to: parseTicks(to) ?? 1n };
  const length = Number(range.to - range.from);
  // A bin is at least one tick.
  return { range, binTicks: length / Math.min(bins, length), data };
});

/** Whether an address can be asked for. @param {string} url */
export function isAnswered(url) {
  return !enclosed || url in enclosed.answers;
}

/** What was packed: gzip as base64. @param {string} text */
export function unpacked(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')));
}
