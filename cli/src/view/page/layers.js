/**
 * Layers over the timeline: those the server knows (critical path, executed path, slack), one from SQL of the reader's own,
 * and the hits of a search. Each is fetched when the state asks for it and kept while it is shown.
 */

import { address, fetchColumns, Latest } from './wire.js';
import { showError } from './dom.js';
import { GREY } from './palette.js';
/** @import { Spans } from './overlays.js' */
/** @import { State } from './state.js' */
/** @import { Trace } from './trace.js' */
/** @import { Answer } from './wire.js' */

/** @typedef {{name: string, spans: Spans}} Layer */

/** @type {Record<string, string>} */
export const LAYER_TITLES = { 'critical-path': 'Critical path', 'executed-path': 'Executed path', slack: 'Slack' };
const OWN_LAYER = 'own';

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
    /** The hits of the search; null without one. @type {Spans | null} */
    this.hits = null;
    this.searching = new Latest();
    this.searchError = '';
    state.on(['layers'], () => this.loadNamed());
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

  loadNamed() {
    for (const name of this.state.now.layers) if (!this.loaded.has(name)) this.load(name, address('layer', { name }));
    this.changed();
  }

  loadOwn() {
    this.loaded.delete(OWN_LAYER);
    const sql = this.state.now.layerSql;
    if (sql) this.load(OWN_LAYER, 'layer', sql);
    this.changed();
  }

  /** @param {string} name @param {string} url @param {string} [body] */
  async load(name, url, body) {
    const latest = this.requests.get(name) ?? new Latest();
    this.requests.set(name, latest);
    try {
      const answer = await latest.run((signal) => fetchColumns(url, { signal, body }));
      if (!answer) return;
      this.loaded.set(name, spansOf(answer, 'spans', this.trace));
    } catch (error) {
      const { layers } = this.state.now;
      this.state.set(name === OWN_LAYER ? { layerSql: '' } : { layers: layers.filter((other) => other !== name) });
      showError(error);
    }
    this.changed();
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
      const answer = await this.searching.run((signal) => fetchColumns(address('search', { pattern }), { signal }));
      if (!answer) return;
      this.hits = spansOf(answer, 'hits', this.trace);
    } catch (error) {
      this.hits = null;
      this.searchError = error instanceof Error ? error.message : String(error);
    }
    this.changed();
  }
}

/** @param {Answer} answer @param {string} name of its table @param {Trace} trace @returns {Spans} */
function spansOf(answer, name, trace) {
  const table = answer.table(name);
  const { header } = answer;
  const [start, finish] = [table.bigints('start'), table.column('finish')];
  const from = table.rows ? start[0] : 0n;
  const all = Array.from({ length: table.rows }, (_, row) => row);
  const optional = (/** @type {string} */ column) => table.columns.find((other) => other.name === column);
  const [task, value, label, named] = ['task', 'value', 'label', 'name'].map(optional);
  const nameOf = (/** @type {number} */ row) => Number(named?.at(row) ?? -1);
  return {
    title: String(header.title ?? name), total: totalOf(header.total ?? header.total_time), count: String(header.count ?? table.rows), from,
    lanes: Uint32Array.from(table.numbers('lane')), rows: Uint16Array.from(table.numbers('row')),
    starts: Float64Array.from(all, (row) => Number(start[row] - from)),
    finishes: Float64Array.from(all, (row) => Number(/** @type {bigint} */ (finish.at(row) ?? trace.bounds.to) - from)),
    tasks: all.map((row) => /** @type {bigint | null} */ (task?.at(row) ?? null)),
    values: all.map((row) => (value ? /** @type {number | null} */ (value.at(row)) : null)),
    labels: all.map((row) => (named ? trace.nameOf(nameOf(row)) : String(label?.at(row) ?? ''))),
    hues: Uint8Array.from(all, (row) => (named ? trace.hueOf(nameOf(row)) : GREY)),
  };
}

/** @param {unknown} text @returns {bigint | null} */
function totalOf(text) {
  return typeof text === 'string' ? BigInt(text) : null;
}
