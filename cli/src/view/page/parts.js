/**
 * Parts of lanes: some rows of tasks, which is what tiles are asked for, so that lanes of many rows are fetched as far as they
 * are in sight. A part is a number: that of its lane, and which of the lane's parts it is.
 */

/** @import { Lane } from './trace.js' */

/** Rows of a part. */
export const PART_ROWS = 6;
/** More than any lane has. */
const PARTS = 65536;

/** The part that has a row. @param {number} lane @param {number} row */
export function partOf(lane, row) {
  return lane * PARTS + Math.floor(row / PART_ROWS);
}

/** @param {number} part */
export function laneOf(part) {
  return Math.floor(part / PARTS);
}

/** The first row of a part. @param {number} part */
export function firstRow(part) {
  return (part % PARTS) * PART_ROWS;
}

/** How many rows a part has. @param {Lane[]} lanes @param {number} part */
export function rowsOf(lanes, part) {
  return Math.min(lanes[laneOf(part)].rows - firstRow(part), PART_ROWS);
}

/** The parts that have rows of a lane. @param {number} lane @param {number} first row @param {number} last row @returns {number[]} */
export function partsBetween(lane, first, last) {
  const from = partOf(lane, first);
  return Array.from({ length: Math.max(partOf(lane, last) - from + 1, 0) }, (_, at) => from + at);
}

/** All of some lanes. @param {Lane[]} lanes @returns {number[]} */
export function allParts(lanes) {
  return lanes.filter((lane) => lane.rows > 0).flatMap((lane) => partsBetween(lane.number, 0, lane.rows - 1));
}

/** `0-3,7,9:6-11`: whole lanes, and rows of others. @param {Lane[]} lanes @param {number[]} parts in order */
export function askFor(lanes, parts) {
  /** @type {[number, number, boolean][]} */
  const ranges = [];
  for (const part of parts) {
    const [lane, last] = [laneOf(part), ranges[ranges.length - 1]];
    const isWhole = lanes[lane].rows <= PART_ROWS;
    const next = isWhole ? lane : part;
    if (last && last[2] === isWhole && last[1] === next - 1 && (isWhole || laneOf(last[1]) === lane)) last[1] = next;
    else ranges.push([next, next, isWhole]);
  }
  return ranges.map(([first, last, isWhole]) => {
    if (isWhole) return first === last ? first : `${first}-${last}`;
    return `${laneOf(first)}:${firstRow(first)}-${firstRow(last) + PART_ROWS - 1}`;
  }).join(',');
}
