/**
 * What the page knows of the trace from the start: its title and bounds, its locations (lanes) and the names of its tasks.
 */

import { visible } from './dom.js';
import { address, fetchColumns, fetchJson } from './wire.js';
import { Clock, parseTicks } from './ticks.js';
import { GREY, hueIndex } from './palette.js';
/** @import { Tick } from './ticks.js' */
/** @import { Table } from './wire.js' */

/** @typedef {{run: string, tasks: string, makespan: string | null, format: string, start: string | null, finish: string | null}} Run */
/** @typedef {{title: string, runs: Run[], start: string | null, finish: string | null, aligned?: {start: string, finish: string} | null, events?: string, has_dependencies?: boolean, tick: Tick, tasks: string, version: string, lost?: string, repaired?: string, left_out?: string}} Info */
/**
 * @typedef {object} Lane
 * @property {number} number
 * @property {string} run
 * @property {string} location
 * @property {string} name
 * @property {string} kind
 * @property {string} role
 * @property {number} parent of the location it belongs to, -1 at the top
 * @property {number} rows
 * @property {number} tasks
 * @property {bigint} busy
 * @property {bigint | null} start
 * @property {bigint | null} finish
 */

/** @typedef {{texts: string[], kinds: string[], hues: Uint8Array, tasks: number[]}} NameList */

const NO_PARENT = 4294967295;

export class Trace {
  /** @param {Info} info @param {Lane[]} lanes @param {NameList} names @param {boolean} isAligned */
  constructor(info, lanes, { texts, kinds, hues, tasks }, isAligned) {
    this.info = info;
    this.lanes = lanes;
    this.names = texts;
    this.kinds = kinds;
    this.hues = hues;
    this.tasksOfNames = tasks;
    this.clock = new Clock(info.tick);
    this.isAligned = isAligned;
    this.bounds = boundsOf(info, isAligned);
    this.isEmpty = !lanes.some((lane) => lane.rows > 0);
    this.hasRuns = info.runs.length > 1;
  }

  /** Takes the bounds of runs as they were, or of runs that begin together. @param {boolean} isAligned */
  align(isAligned) {
    this.isAligned = isAligned && Boolean(this.info.aligned);
    this.bounds = boundsOf(this.info, this.isAligned);
  }

  /** How far a run is moved, in ticks; null where that is not known. @param {string} run @returns {bigint | null} */
  shiftOf(run) {
    if (!this.isAligned) return 0n;
    const start = parseTicks(this.info.runs.find((other) => other.run === run)?.start);
    return start === null ? null : this.bounds.from - start;
  }

  /** Ticks from the first start to the last finish of a run. @param {string} run */
  lengthOf(run) {
    const makespan = this.info.runs.find((other) => other.run === run)?.makespan;
    return Math.max(Number(makespan ?? this.bounds.to - this.bounds.from), 1);
  }

  /** @param {number} name */
  nameOf(name) {
    return this.names[name] || '(unnamed)';
  }

  /** @param {number} name */
  hueOf(name) {
    return this.hues[name] ?? GREY;
  }

  /** A lane's full name for people. @param {number} number */
  placeOf(number) {
    const lane = this.lanes[number];
    if (!lane) return '';
    return this.hasRuns ? `${lane.run} · ${lane.location}` : lane.location;
  }

  /** The lane of a location; the first of its name where no run is given. @param {string} location @param {string | null} run */
  laneOf(location, run) {
    return this.lanes.findIndex((lane) => lane.location === location && (run === null || lane.run === run));
  }
}

/** @param {Info} info @param {boolean} isAligned */
function boundsOf(info, isAligned) {
  const { start, finish } = (isAligned && info.aligned) || info;
  const from = parseTicks(start) ?? 0n;
  const to = parseTicks(finish) ?? from;
  return { from, to: to > from ? to : from + 1n };
}

/** @param {boolean} isAligned @returns {Promise<Trace>} */
export async function loadTrace(isAligned) {
  const [info, lanes, names] = await Promise.all([fetchJson('info'), loadLanes(), fetchColumns('names')]);
  const table = names.table('names');
  const name = table.column('name');
  const colour = table.numbers('colour');
  const kind = table.column('kind');
  const all = Array.from({ length: table.rows }, (_, row) => row);
  const list = {
    texts: all.map((row) => String(name.at(row) ?? '')), kinds: all.map((row) => String(kind.at(row) ?? '')),
    hues: Uint8Array.from(all, (row) => hueIndex(colour[row])), tasks: Array.from(table.bigints('tasks'), Number),
  };
  return new Trace(info, lanes, list, isAligned);
}

/** @returns {Promise<Lane[]>} */
export async function loadLanes() {
  return lanesOf((await fetchColumns(address('lanes'))).table('lanes'));
}

/** @param {Table} table @returns {Lane[]} */
function lanesOf(table) {
  const text = (/** @type {string} */ name) => {
    const column = table.column(name);
    return (/** @type {number} */ row) => String(column.at(row) ?? '');
  };
  const ticks = (/** @type {string} */ name) => {
    const column = table.column(name);
    return (/** @type {number} */ row) => /** @type {bigint | null} */ (column.at(row));
  };
  const [run, location, name, kind, role] = ['run', 'location', 'name', 'kind', 'role'].map(text);
  const [busy, start, finish, tasks] = ['busy', 'start', 'finish', 'tasks'].map(ticks);
  const parent = table.numbers('parent');
  const rows = table.numbers('rows');
  return Array.from({ length: table.rows }, (_, at) => ({
    number: at, run: run(at), location: location(at), name: name(at), kind: kind(at), role: role(at),
    parent: parent[at] === NO_PARENT ? -1 : parent[at], rows: rows[at], tasks: Number(tasks(at) ?? 0n), busy: busy(at) ?? 0n,
    start: start(at), finish: finish(at),
  }));
}
