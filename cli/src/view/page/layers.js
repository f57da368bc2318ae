/**
 * Layers over the timeline: those the server knows (critical path, slack, events and others), one from SQL of the reader's
 * own, and the hits of a search. Each is fetched when the state asks for it, and told to who waits for it.
 */

import { address, fetchColumns, Latest } from './wire.js';
import { hideError, showError } from './dom.js';
import { enclosed } from './enclosed.js';
import { searchSingles } from './singles.js';
/** @import { Spans } from './overlays.js' */
/** @import { State } from './state.js' */
/** @import { Trace } from './trace.js' */
/** @import { Answer } from './wire.js' */

/** @typedef {{name: string, spans: Spans}} Layer */

export const PATH_LAYER = 'critical-path';
export const OWN_LAYER = 'own';
export const FACTOR_LAYER = 'differences';
/** @type {Record<string, string>} */
export const LAYER_TITLES = {
  [OWN_LAYER]: 'Layer', [PATH_LAYER]: 'Critical path', 'executed-path': 'Executed path', slack: 'Slack', readiness: 'Readiness delay', events: 'Events', [FACTOR_LAYER]: 'Difference',
};

const OF_DEPENDENCIES = [PATH_LAYER, 'slack', 'readiness'];

/** Names and titles of the layers that a trace can have. @param {Trace} trace */
export function layersOf({ info }) {
  return Object.entries(LAYER_TITLES).filter(([name]) =>
    name !== OWN_LAYER && (info.has_dependencies || !OF_DEPENDENCIES.includes(name)) && (name !== 'events' || Number(info.events) > 0) && (name !== FACTOR_LAYER || info.runs.length === 2));
}

export class Layers {
  /** @param {State} state @param {Trace} trace @param {() => void} changed */
  constructor(state, trace, changed) {
    this.state = state;
    this.trace = trace;
    this.changed = changed;
    /** @type {Map<string, Spans>} */
    this.loaded = new Map();
    /** @type {Map<string, Latest>} */
    this.requests = new Map();
    /** Those that are on their way. @type {Set<string>} */
    this.loading = new Set();
    /** The hits of the search; null without one. @type {Spans | null} */
    this.hits = null;
    /** Called with the name of a layer that came or went. @type {((name: string) => void)[]} */
    this.listeners = [];
    /** Whether there may be more hits among tasks that are only known in sums. */
    this.isPartial = false;
    this.searching = new Latest();
    this.searchError = '';
    state.on(['layers', 'order'], () => this.loadNamed());
    state.on(['layerSql'], () => this.loadOwn());
    state.on(['search'], () => this.search());
    this.loadNamed();
    this.loadOwn();
    this.search();
  }

  /** The layers that are shown, in the order in which they are drawn. @returns {Layer[]} */
  get shown() {
    const names = [...this.state.now.layers, ...(this.state.now.layerSql ? [OWN_LAYER] : [])];
    return names.flatMap((name) => {
      const spans = this.loaded.get(name);
      return spans ? [{ name, spans }] : [];
    });
  }

  /** What a layer of one's own writes on tasks instead of their names. */
  get labels() {
    return this.loaded.get(OWN_LAYER)?.labelOf ?? new Map();
  }

  /** Loads all again, for other instants. */
  reload() {
    this.loaded.clear();
    this.loadNamed();
    this.loadOwn();
    this.search();
  }

  loadNamed() {
    const { layers, order } = this.state.now;
    for (const name of order === 'path' ? [...layers, PATH_LAYER] : layers) {
      if (!this.loaded.has(name)) this.load(name, address('layer', { name }));
    }
    this.changed();
  }

  loadOwn() {
    this.loaded.delete(OWN_LAYER);
    const sql = this.state.now.layerSql;
    if (sql) this.load(OWN_LAYER, address('layer'), sql);
    else {
      this.requests.get(OWN_LAYER)?.abort();
      this.loading.delete(OWN_LAYER);
    }
    this.tell(OWN_LAYER);
  }

  /** @param {string} name */
  tell(name) {
    this.listeners.forEach((tell) => tell(name));
    this.changed();
  }

  /** @param {string} name @param {string} url @param {string} [body] */
  async load(name, url, body) {
    const latest = this.requests.get(name) ?? new Latest();
    this.requests.set(name, latest);
    this.loading.add(name);
    try {
      const answer = await latest.run((signal) => fetchColumns(url, { signal, body }));
      if (!answer) return;
      this.loading.delete(name);
      this.loaded.set(name, spansOf(answer, 'spans', this.trace, name === 'readiness'));
      hideError();
    } catch (error) {
      this.loading.delete(name);
      const { layers, order } = this.state.now;
      const others = { layers: layers.filter((other) => other !== name), order: name === PATH_LAYER && order === 'path' ? 'sort_index' : order };
      this.state.set(name === OWN_LAYER ? { layerSql: '' } : others);
      showError(error);
    }
    this.tell(name);
  }

  async search() {
    const pattern = this.state.now.search;
    this.searchError = '';
    if (!pattern) {
      this.searching.abort();
      this.hits = null;
      return this.changed();
    }
    try {
      const found = await this.searching.run((signal) => (enclosed ? searchSingles(pattern, this.trace) : this.ask(pattern, signal)));
      if (!found) return;
      this.hits = found.hits;
      this.isPartial = found.isPartial;
    } catch (error) {
      this.hits = null;
      this.searchError = error instanceof Error ? error.message : String(error);
    }
    this.changed();
  }

  /** @param {string} pattern @param {AbortSignal} signal */
  async ask(pattern, signal) {
    const answer = await fetchColumns(address('search', { pattern }), { signal });
    return { hits: spansOf(answer, 'hits', this.trace), isPartial: false };
  }
}

/** @param {Answer} answer @param {string} name of its table @param {Trace} trace @param {boolean} [isLongestFirst] so that shorter ones are drawn over longer ones @returns {Spans} */
function spansOf(answer, name, trace, isLongestFirst = false) {
  const table = answer.table(name);
  const { header } = answer;
  const [start, finish] = [table.bigints('start'), table.column('finish')];
  const from = table.rows ? start[0] : 0n;
  const all = Array.from({ length: table.rows }, (_, row) => row);
  const finishOf = (/** @type {number} */ row) => Number(/** @type {bigint} */ (finish.at(row) ?? trace.bounds.to) - from);
  const lengthOf = (/** @type {number} */ row) => finishOf(row) - Number(start[row] - from);
  if (isLongestFirst) all.sort((a, b) => lengthOf(b) - lengthOf(a));
  const [lane, place] = ['lane', 'row'].map((column) => table.numbers(column));
  const optional = (/** @type {string} */ column) => table.columns.find((other) => other.name === column);
  const [task, value, label, named] = ['task', 'value', 'label', 'name'].map(optional);
  const names = all.map((row) => Number(named?.at(row) ?? -1));
  const tasks = all.map((row) => /** @type {bigint | null} */ (task?.at(row) ?? null));
  const values = all.map((row) => (value ? /** @type {number | null} */ (value.at(row)) : null));
  const labels = all.map((row) => (named ? trace.nameOf(names[row]) : String(label?.at(row) ?? '')));
  const finishes = Float64Array.from(all, finishOf);
  const starts = Float64Array.from(all, (row) => Number(start[row] - from));
  return {
    title: String(header.title ?? name), total: totalOf(header.total ?? header.total_time), count: String(header.count ?? table.rows), from,
    lanes: Uint32Array.from(all, (row) => lane[row]), rows: Uint16Array.from(all, (row) => place[row]),
    starts, finishes, tasks, values, labels, names,
    labelOf: new Map(all.flatMap((_, at) => (tasks[at] !== null && labels[at] ? [[tasks[at], labels[at]]] : []))),
    scale: scaleOf(values), areTicks: header.value_is === 'duration', isCut: header.complete === false, areInstants: all.length > 0 && starts.every((begin, at) => begin === finishes[at]),
  };
}

/** The least and the most of values; null where there are none. @param {(number | null)[]} values */
function scaleOf(values) {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least <= most ? { least, most } : null;
}

/** @param {unknown} text @returns {bigint | null} */
function totalOf(text) {
  return typeof text === 'string' ? BigInt(text) : null;
}
