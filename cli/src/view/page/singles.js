/**
 * The tasks that a page without a server knows one by one: those that its finest tiles do not sum up. Here their names are
 * searched, and here is what is known of one of them.
 */

import { finestTiles } from './pyramid.js';
import { unpackColumns, WireError } from './wire.js';
/** @import { Spans } from './overlays.js' */
/** @import { TaskInfo } from './selection.js' */
/** @import { Trace } from './trace.js' */

/** @typedef {{lane: number, row: number, name: number, task: bigint, start: bigint, finish: bigint}} Single */
/**
 * @typedef {object} Part the tasks of one tile
 * @property {ArrayLike<number>} lane
 * @property {ArrayLike<number>} row
 * @property {ArrayLike<number>} name
 * @property {BigInt64Array} task
 * @property {BigInt64Array} start
 * @property {BigInt64Array} finish
 * @property {number[]} fresh those that no tile before has
 */
/** @typedef {{parts: Part[], hasSums: boolean}} Singles */

/** @type {Promise<Singles> | null} */
let known = null;

/** @returns {Promise<Singles>} */
async function unpackSingles() {
  /** @type {Part[]} */
  const parts = [];
  const seen = new Set();
  let hasSums = false;
  for (const { data } of finestTiles()) {
    const answer = await unpackColumns(data);
    const table = answer.table('tasks');
    const [lane, row, name] = ['lane', 'row', 'name'].map((column) => table.numbers(column));
    const [task, start, finish] = ['task', 'start', 'finish'].map((column) => table.bigints(column));
    /** @type {number[]} */
    const fresh = [];
    task.forEach((one, at) => {
      if (!seen.has(one)) fresh.push(at);
      seen.add(one);
    });
    parts.push({ lane, row, name, task, start, finish, fresh });
    hasSums ||= answer.table('bins').rows > 0;
  }
  return { parts, hasSums };
}

/** @param {Part} part @param {number} at @returns {Single} */
function singleAt({ lane, row, name, task, start, finish }, at) {
  return { lane: lane[at], row: row[at], name: name[at], task: task[at], start: start[at], finish: finish[at] };
}

/**
 * The tasks whose name has what a regular expression of JavaScript says, and whether sums may hold more.
 * @param {string} pattern @param {Trace} trace @returns {Promise<{hits: Spans, isPartial: boolean}>}
 */
export async function searchSingles(pattern, trace) {
  // The server knows `(?i)`, JavaScript a flag.
  const wanted = new RegExp(pattern.replace(/^\(\?i\)/, ''), pattern.startsWith('(?i)') ? 'i' : '');
  const names = new Set(trace.names.flatMap((name, at) => (wanted.test(name) ? at : [])));
  const { parts, hasSums } = await (known ??= unpackSingles());
  const found = parts.flatMap((part) => part.fresh.filter((at) => names.has(part.name[at])).map((at) => singleAt(part, at)));
  found.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : a.task < b.task ? -1 : 1));
  // A name that is only in sums may have been left empty.
  return { hits: spansOf(found, trace), isPartial: hasSums && (names.size > 0 || trace.names.includes('')) };
}

/** @param {Single[]} found @param {Trace} trace @returns {Spans} */
function spansOf(found, trace) {
  const from = found[0]?.start ?? 0n;
  return {
    title: 'hits', total: found.reduce((sum, { start, finish }) => sum + finish - start, 0n), count: String(found.length), from,
    lanes: Uint32Array.from(found, ({ lane }) => lane), rows: Uint16Array.from(found, ({ row }) => row),
    starts: Float64Array.from(found, ({ start }) => Number(start - from)), finishes: Float64Array.from(found, ({ finish }) => Number(finish - from)),
    tasks: found.map(({ task }) => task), values: found.map(() => null), labels: found.map(({ name }) => trace.nameOf(name)),
    names: found.map(({ name }) => name), labelOf: new Map(), scale: null, isCut: false, areTicks: false, areInstants: false,
  };
}

/** What is known of a task. @param {bigint} task @param {Trace} trace @returns {Promise<TaskInfo>} */
export async function singleTask(task, trace) {
  const { parts } = await (known ??= unpackSingles());
  const part = parts.find((other) => other.task.includes(task));
  if (!part) throw new WireError(404, { message: `This file does not show task ${task} by itself.`, hint: '`tq view` of the trace does.' });
  const { lane, row, name, start, finish } = singleAt(part, part.task.indexOf(task));
  const { run, location } = trace.lanes[lane];
  return {
    task: String(task), name: trace.names[name] ?? '', kind: '', role: null, run, location, lane, row, start: String(start), finish: String(finish),
    duration: String(finish - start), self_time: null, args: null, rank: null, parent: null, children: '0', released_by: [], releases: [],
  };
}
