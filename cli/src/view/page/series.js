/**
 * Series of counters: what was measured over time, each with a scale of its own. Loads their list, gives each a node in the
 * tree of lanes (the first few of a lane, and one node that holds the others) and writes their values for people.
 */

import { fetchColumns } from './wire.js';
import { grouped } from './ticks.js';
/** @import { LaneNode } from './lanes.js' */
/** @import { Trace } from './trace.js' */

/**
 * @typedef {object} Series
 * @property {number} number
 * @property {number} lane -1 where it belongs to none
 * @property {string} run
 * @property {string} name
 * @property {string} unit
 * @property {number} least
 * @property {number} most
 * @property {number} points
 */

const NO_LANE = 4294967295;
const SHOWN_AT_ONCE = 3;
const SI_FACTORS = /** @type {const} */ ([['P', 1e15], ['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]);

/** @returns {Promise<Series[]>} */
export async function loadSeries() {
  const table = (await fetchColumns('counters')).table('counters');
  const [lane, least, most] = ['lane', 'least', 'most'].map((name) => table.numbers(name));
  const [run, name, unit, points] = ['run', 'name', 'unit', 'points'].map((column) => table.column(column));
  return Array.from({ length: table.rows }, (_, at) => ({
    number: at, lane: lane[at] === NO_LANE ? -1 : lane[at], run: String(run.at(at) ?? ''), name: String(name.at(at) ?? ''),
    unit: String(unit.at(at) ?? ''), least: least[at], most: most[at], points: Number(points.at(at) ?? 0),
  }));
}

/**
 * The nodes of series by the node below which they are drawn: a lane, a run, or -1 for the end of the tree.
 * @param {Trace} trace @param {Series[]} all @returns {Map<number, LaneNode[]>}
 */
export function counterNodes(trace, all) {
  const { runs } = trace.info;
  const ids = trace.lanes.length + runs.length;
  /** @type {Map<number, LaneNode[]>} */
  const nodes = new Map();
  for (const series of all) {
    const run = trace.hasRuns ? runs.findIndex((other) => other.run === series.run) : -1;
    const owner = trace.lanes[series.lane] ? series.lane : run < 0 ? -1 : trace.lanes.length + run;
    const node = nodeOf(2 * ids + 1 + series.number, 'counter', series.name || '(unnamed)', series, []);
    const others = nodes.get(owner);
    if (others) others.push(node);
    else nodes.set(owner, [node]);
  }
  for (const [owner, list] of nodes) {
    if (list.length <= SHOWN_AT_ONCE) continue;
    const others = list.splice(SHOWN_AT_ONCE);
    list.push(nodeOf(ids + (owner < 0 ? ids : owner), 'counters', `+${others.length} ${others.length === 1 ? 'counter' : 'counters'}`, null, others));
  }
  return nodes;
}

/**
 * @param {number} id @param {'counter' | 'counters'} kind @param {string} title @param {Series | null} series @param {LaneNode[]} children
 * @returns {LaneNode}
 */
function nodeOf(id, kind, title, series, children) {
  return { id, kind, lane: null, title, children, busy: 0n, start: null, path: 0, hasTasks: false, series, counters: [], hasCounters: true };
}

/** A number in few digits: `1.2 k`, `3.4 M`, `5.6 G`. @param {number} value @param {number} [digits] */
export function shortNumber(value, digits = 3) {
  const size = Math.abs(value);
  const [name, factor] = SI_FACTORS.find(([, power]) => size >= power * (1 - 0.5 / 10 ** digits)) ?? ['', 1];
  const text = Number((value / factor).toPrecision(digits));
  return name ? `${text} ${name}` : String(text);
}

/** The range of a series with as many digits as tell its ends apart. @param {Series} series */
export function rangeText({ least, most, unit }) {
  const after = unit ? ` ${unit}` : '';
  if (least === most) return `${shortNumber(least)}${after}`;
  let digits = 3;
  while (digits < 9 && shortNumber(least, digits) === shortNumber(most, digits)) digits++;
  return `${shortNumber(least, digits)} to ${shortNumber(most, digits)}${after}`;
}

/** A value with its unit: whole numbers in full, others to six digits. @param {number} value @param {string} unit */
export function valueText(value, unit) {
  const [whole, ...rest] = String(Number.isInteger(value) ? value : Number(value.toPrecision(6))).split('.');
  return [grouped(whole), ...rest].join('.') + (unit ? ` ${unit}` : '');
}

/** A sentence about a series. @param {Series} series @param {string} place */
export function describeSeries(series, place) {
  const points = `${grouped(series.points)} ${series.points === 1 ? 'value' : 'values'}`;
  return [series.name, rangeText(series), points, place].filter(Boolean).join(' · ');
}
