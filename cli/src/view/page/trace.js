/**
 * What the page knows of the trace from the start: its title and bounds, its locations (lanes) and the names of its tasks.
 */

import { fetchColumns, fetchJson } from './wire.js';
import { Clock, parseTicks } from './ticks.js';
import { GREY, hueIndex } from './palette.js';
/** @import { Tick } from './ticks.js' */
/** @import { Table } from './wire.js' */

/** @typedef {{run: string, tasks: string, makespan: string | null, format: string, start: string | null, finish: string | null}} Run */
/** @typedef {{title: string, runs: Run[], start: string | null, finish: string | null, tick: Tick, tasks: string, version: string, lost?: string, repaired?: string, left_out?: string}} Info */
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

const NO_PARENT = 4294967295;

export class Trace {
  /** @param {Info} info @param {Lane[]} lanes @param {string[]} names @param {Uint8Array} hues of the names */
  constructor(info, lanes, names, hues) {
    this.info = info;
    this.lanes = lanes;
    this.names = names;
    this.hues = hues;
    this.clock = new Clock(info.tick);
    const from = parseTicks(info.start) ?? 0n;
    const to = parseTicks(info.finish) ?? from;
    this.bounds = { from, to: to > from ? to : from + 1n };
    this.isEmpty = !lanes.some((lane) => lane.rows > 0);
    this.hasRuns = info.runs.length > 1;
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

/** @returns {Promise<Trace>} */
export async function loadTrace() {
  const [info, lanes, names] = await Promise.all([fetchJson('info'), fetchColumns('lanes'), fetchColumns('names')]);
  const table = names.table('names');
  const name = table.column('name');
  const colour = table.numbers('colour');
  const texts = Array.from({ length: table.rows }, (_, row) => String(name.at(row) ?? ''));
  return new Trace(info, lanesOf(lanes.table('lanes')), texts, Uint8Array.from({ length: table.rows }, (_, row) => hueIndex(colour[row])));
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
