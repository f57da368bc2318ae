/**
 * The panel of the selected range: saved queries on that slice of the trace (on all of it where none is selected), drawn by
 * the server as a report draws them.
 */

import { make, part } from './dom.js';
import { inertHtml, inertSvg } from './inert.js';
import { address, fetchJson, Latest } from './wire.js';
/** @import { Guide } from './guide.js' */
/** @import { Scene } from './timeline.js' */
/** @import { WireError } from './wire.js' */

/** @typedef {{name: string, type: string, default: string | null, doc: string}} Param */
/** @typedef {{name: string, title: string, topic: string, sql: string, fits: boolean, chart: string | null, params: Param[]}} Query */

const USUAL_QUERIES = [
  'gpu-time-breakdown', 'gpu-collective-skew', 'pascal-diagrams-safe', 'time-by-name', 'busy-locations', 'longest-own-times', 'critical-path-by-name',
  'executed-path', 'weights-by-name', 'actorprof-summary',
];

export class SummaryPanel {
  /** @param {Scene} scene @param {Guide} guide */
  constructor(scene, guide) {
    this.scene = scene;
    this.guide = guide;
    /** @type {Query[]} */
    this.queries = [];
    this.latest = new Latest();
    this.shown = '';
    this.head = make('div', { class: 'chips' });
    this.form = make('form', { class: 'chips', 'aria-label': 'Parameters of the query', onsubmit: (/** @type {Event} */ event) => this.take(event) });
    this.body = make('div', { class: 'chart', 'aria-live': 'polite' });
    part('panel-range').append(this.head, this.form, this.body);
    scene.state.on(['range', 'query', 'params', 'tab', 'aligned'], () => this.show());
    scene.state.on(['theme'], () => this.draw());
    /** @type {{title: string, svg: string | null, html: string} | null} */
    this.answer = null;
  }

  /** @param {Query[]} queries */
  offer(queries) {
    this.queries = queries;
    this.show();
  }

  get query() {
    const { query } = this.scene.state.now;
    return query || this.usual[0]?.name || this.queries.find(({ fits }) => fits)?.name || '';
  }

  get usual() {
    return USUAL_QUERIES.flatMap((name) => this.queries.find((query) => query.name === name && query.fits) ?? []);
  }

  show() {
    if (this.scene.state.now.tab !== 'range') return;
    if (!this.queries.length) {
      this.body.replaceChildren(make('p', { class: 'pale' }, 'Loading the saved queries …'));
      return;
    }
    this.showHead();
    this.showForm();
    this.load();
  }

  /** @param {string} query */
  choose(query) {
    this.scene.state.set({ query, params: '' });
  }

  /** What was given for parameters of the query. */
  get given() {
    return new URLSearchParams(this.scene.state.now.params);
  }

  /** A field for each parameter; what is not changed is the default. */
  showForm() {
    const query = this.queries.find(({ name }) => name === this.query);
    if (this.form.dataset.query === query?.name && this.form.contains(document.activeElement)) return;
    const { given } = this;
    const field = (/** @type {Param} */ param) => make('label', { class: 'param', title: param.doc }, `${param.name} `,
      make('input', {
        name: param.name, value: given.get(param.name) ?? '', placeholder: param.default === 'NULL' ? '' : param.default ?? 'needed',
        size: 12, autocomplete: 'off', 'aria-label': `${param.name}: ${param.doc}`,
      }));
    const params = query?.params ?? [];
    this.form.dataset.query = query?.name ?? '';
    this.form.hidden = !params.length;
    this.form.replaceChildren(...params.map(field), make('button', {}, 'Apply'));
  }

  /** Takes what the fields have. @param {Event} event */
  take(event) {
    event.preventDefault();
    const fields = [...this.form.querySelectorAll('input')].filter(({ value }) => value !== '');
    this.scene.state.set({ query: this.query, params: String(new URLSearchParams(fields.map(({ name, value }) => [name, value]))) });
  }

  showHead() {
    const { range } = this.scene.state.now;
    const { clock } = this.scene.trace;
    const chip = (/** @type {Query} */ query) => make('button', {
      type: 'button', title: query.title, 'aria-pressed': query.name === this.query, onclick: () => this.choose(query.name),
    }, query.name);
    const had = this.head.contains(document.activeElement) ? document.activeElement?.textContent : null;
    this.head.replaceChildren(
      make('strong', {}, range ? `${clock.text(range.to - range.from)} from ${clock.text(range.from)}` : 'The whole trace'),
      range ? make('button', { type: 'button', onclick: () => this.scene.view.show(range) }, 'Zoom to it') : '',
      range ? make('button', { type: 'button', onclick: () => this.scene.state.set({ range: null }) }, 'Whole trace') : '',
      ...this.usual.map(chip), this.select());
    if (had) [...this.head.querySelectorAll('button')].find((button) => button.textContent === had)?.focus();
  }

  select() {
    const groups = new Map(this.queries.map(({ topic }) => [topic, make('optgroup', { label: topic })]));
    for (const { name, title, topic, fits } of this.queries) {
      groups.get(topic)?.append(make('option', { value: name, title, disabled: !fits, selected: name === this.query }, name));
    }
    return make('select', {
      'aria-label': 'All saved queries',
      onchange: (/** @type {Event} */ event) => this.choose(/** @type {HTMLSelectElement} */ (event.target).value),
    }, ...groups.values());
  }

  async load() {
    const { range, aligned } = this.scene.state.now;
    if (range && aligned) return this.refuse();
    const given = Object.fromEntries([...this.given].map(([name, value]) => [`param.${name}`, value]));
    const url = address('saved', { name: this.query, from: range?.from, to: range?.to, ...given });
    if (url === this.shown) return;
    this.shown = url;
    this.body.setAttribute('aria-busy', 'true');
    this.body.replaceChildren(make('p', { class: 'pale' }, 'Loading …'));
    this.answer = null;
    try {
      await pause(range ? 180 : 0);
      const answer = this.shown === url ? await this.latest.run((signal) => fetchJson(url, { signal })) : null;
      if (!answer) return;
      this.answer = answer;
      this.draw();
    } catch (error) {
      const { message, hint } = /** @type {WireError} */ (error);
      this.body.replaceChildren(make('p', { class: 'wrong' }, message), hint ? make('p', { class: 'pale' }, hint) : '');
    }
    this.body.removeAttribute('aria-busy');
  }

  /** A range of aligned runs is none of the trace, and saved queries only know those. */
  refuse() {
    this.latest.abort();
    this.shown = '';
    this.answer = null;
    this.body.removeAttribute('aria-busy');
    this.body.replaceChildren(make('p', {}, 'While runs are aligned, saved queries are only about the whole trace: a range of it would be another one in each run.'),
      make('div', { class: 'chips' }, make('button', { type: 'button', onclick: () => this.scene.state.set({ range: null }) }, 'Whole trace'),
        make('button', { type: 'button', onclick: () => this.scene.state.set({ aligned: false, view: null, range: null, marks: [] }) }, 'Do not align runs')));
  }

  draw() {
    if (!this.answer) return;
    const { title, svg, html } = this.answer;
    this.body.replaceChildren(
      svg ? inertSvg(svg) : make('h3', {}, String(title)),
      html ? make('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Rows' }, inertHtml(html)) : '');
  }
}

/** @param {number} milliseconds @returns {Promise<void>} */
function pause(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}
