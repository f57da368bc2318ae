/**
 * The SQL panel: an editor with completion, examples, errors with their place, and the answer as a table whose rows lead
 * back to the timeline; the query can be laid over the timeline, and saved as a file.
 */

import { make, part, saveFile } from './dom.js';
import { Grid } from './grid.js';
import { OWN_LAYER } from './layers.js';
import { grouped } from './ticks.js';
import { address, fetchColumns, Latest } from './wire.js';
import { Completion } from './words.js';
/** @import { Guide } from './guide.js' */
/** @import { Scene } from './timeline.js' */
/** @import { Answer, Table, WireError } from './wire.js' */

/** @type {[string, string][]} */
const SQL_EXAMPLES = [
  ['Longest tasks', 'SELECT task, name, location, start, duration\nFROM tasks\nORDER BY duration DESC\nLIMIT 100'],
  ['Time by name', 'SELECT name, count(*) AS tasks, sum(duration) AS total_time\nFROM program_tasks\nGROUP BY name\nORDER BY total_time DESC'],
  ['Gaps', 'SELECT location, start, finish, duration\nFROM gaps(by => \'location\')\nORDER BY duration DESC\nLIMIT 100'],
  ['Critical path', 'SELECT step, task, name, location, start, duration, path_time\nFROM critical_path()\nORDER BY step'],
];

export class SqlPanel {
  /** @param {Scene} scene @param {Guide} guide */
  constructor(scene, guide) {
    this.scene = scene;
    this.guide = guide;
    this.latest = new Latest();
    this.field = make('textarea', {
      'aria-label': 'SQL', spellcheck: false, autocomplete: 'off', placeholder: 'SELECT … (Ctrl+Enter runs it)', value: scene.state.now.sql,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event), oninput: () => this.edited(), onchange: () => this.edited(),
    });
    const editor = make('div', { class: 'editor' }, this.field);
    this.completion = new Completion(this.field);
    this.message = make('div', { role: 'status' });
    this.answer = make('div', { class: 'sql-answer' });
    /** @type {Grid | null} */
    this.grid = null;
    this.runButton = this.button('Run', 'primary', 'Ctrl+Enter', () => this.run());
    this.sliceBox = make('input', { type: 'checkbox' });
    part('panel-sql').append(make('div', { class: 'sql' }, this.examples(), editor, this.buttons(), this.message, this.answer));
    this.showRange();
    scene.state.on(['range', 'aligned'], () => this.showRange());
    scene.state.on(['sql'], () => { if (this.field.value !== scene.state.now.sql) this.field.value = scene.state.now.sql; });
    scene.state.on(['layerSql'], () => this.showLayer());
    scene.layers.listeners.push((name) => { if (name === OWN_LAYER && scene.layers.loaded.has(name)) this.forgetFailure(); });
    if (scene.state.now.tab === 'sql' && this.field.value) this.run();
  }

  /** @param {string} text @param {string} style @param {string} title @param {() => void} onclick */
  button(text, style, title, onclick) {
    return make('button', { type: 'button', class: style, title, onclick }, text);
  }

  examples() {
    return make('div', { class: 'chips', role: 'group', 'aria-label': 'Examples' }, make('span', { class: 'pale' }, 'Examples'),
      ...SQL_EXAMPLES.map(([title, sql]) => this.button(title, '', sql, () => this.ask(sql))));
  }

  buttons() {
    this.layerButton = this.button('As a layer', '', 'Draw the rows over the timeline: they need task, or location, start and finish', () => this.toggleLayer());
    this.csvLink = make('a', { class: 'button', download: 'answer.csv', hidden: true }, 'All rows as CSV');
    this.parquetLink = make('a', { class: 'button', download: 'answer.parquet', hidden: true }, 'as Parquet');
    this.copyButton = this.button('Copy as CSV', '', 'The rows below, in their order', () => this.copy());
    this.copyButton.hidden = true;
    this.showLayer();
    return make('div', { class: 'chips' }, this.runButton, make('label', {}, this.sliceBox, 'only the selected range'), this.layerButton,
      this.button('Save as a query', '', 'A .sql file for --queries or .tq/queries', () => this.save()), this.copyButton, this.csvLink, this.parquetLink);
  }

  showRange() {
    const { range, aligned } = this.scene.state.now;
    // The trace has no range of aligned runs.
    this.sliceBox.disabled = !range || aligned;
    if (this.sliceBox.disabled) this.sliceBox.checked = false;
  }

  showLayer() {
    const isShown = this.scene.state.now.layerSql !== '' && this.scene.state.now.layerSql === this.field.value;
    this.layerButton?.setAttribute('aria-pressed', String(isShown));
  }

  edited() {
    this.scene.state.set({ sql: this.field.value });
    this.showLayer();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (this.completion.key(event)) {
      event.preventDefault();
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run();
    } else if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      this.completion.offer();
    } else if (event.key === 'Escape') part('lanes').focus();
  }

  /** @param {string} sql */
  ask(sql) {
    this.field.value = sql;
    this.edited();
    this.run();
  }

  async run() {
    this.completion.close();
    const sql = this.field.value;
    if (!sql.trim()) return this.field.focus();
    const slice = this.sliceBox.checked ? this.scene.state.now.range : null;
    this.message.replaceChildren(make('span', { class: 'pale' }, 'Running … '), this.button('Stop', '', 'Abandon the query', () => this.stop()));
    try {
      const url = address('sql', { from: slice?.from, to: slice?.to });
      const answer = await this.latest.run((signal) => fetchColumns(url, { signal, body: sql }));
      if (answer) this.show(answer, sql);
    } catch (error) {
      this.showFailure(/** @type {WireError} */ (error), sql);
    }
  }

  /** A layer that is there says that the text is right. */
  forgetFailure() {
    if (this.message.querySelector('.wrong')) this.message.replaceChildren();
  }

  stop() {
    this.latest.abort();
    this.message.replaceChildren('Stopped.');
  }

  /** @param {Answer} answer @param {string} sql */
  show(answer, sql) {
    const table = answer.table('rows');
    const { complete, milliseconds, notes } = answer.header;
    const rows = `${grouped(table.rows)} ${table.rows === 1 ? 'row' : 'rows'}${complete ? '' : ' (the first ones: download all of them)'}`;
    this.message.replaceChildren(
      make('span', { class: 'pale' }, `${rows} in ${Number(milliseconds).toFixed(1)} ms`),
      ...(notes ?? []).map((/** @type {string} */ note) => make('div', { class: 'pale' }, note)));
    this.grid = new Grid(table, this.scene.trace.clock, this.jumpOf(table));
    this.answer.replaceChildren(table.columns.length ? this.grid.element : '');
    this.offerDownloads(sql);
  }

  /** @param {string} sql */
  offerDownloads(sql) {
    const isShort = sql.length < 6000;
    for (const link of [this.csvLink, this.parquetLink]) if (link) link.hidden = !isShort;
    if (this.csvLink) this.csvLink.href = address('sql.csv', { sql });
    if (this.parquetLink) this.parquetLink.href = address('sql.parquet', { sql });
    if (this.copyButton) this.copyButton.hidden = false;
  }

  /** @param {WireError} error @param {string} sql */
  showFailure({ message, hint, line, column }, sql) {
    const source = line ? sql.split('\n')[line - 1] ?? '' : '';
    this.message.replaceChildren(make('div', { class: 'wrong' },
      make('strong', {}, `${line ? `Line ${line}, column ${column ?? 1}: ` : ''}${message}`),
      source ? make('pre', { class: 'mono' }, `${source}\n${' '.repeat(Math.max((column ?? 1) - 1, 0))}^`) : '',
      hint ? make('div', {}, hint) : ''));
    this.answer.replaceChildren();
    if (line) this.placeCaret(sql, line, column ?? 1);
  }

  /** @param {string} sql @param {number} line @param {number} column */
  placeCaret(sql, line, column) {
    const at = sql.split('\n').slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
    this.field.setSelectionRange(at, at);
  }

  /** What a row leads to: its task, else its span of time. @param {Table} table @returns {((row: number) => void) | null} */
  jumpOf(table) {
    const named = (/** @type {string} */ name) => table.columns.find((column) => column.name === name && (column.texts === null || name === 'location' || name === 'run'));
    const task = table.columns.find((column) => column.is === 'task') ?? named('task');
    const [start, finish, location, run] = ['start', 'finish', 'location', 'run'].map(named);
    if (!task && !(start && finish)) return null;
    const { trace } = this.scene;
    return (row) => {
      const id = task?.at(row);
      if (typeof id === 'bigint') return this.guide.select(id);
      const [from, to] = [start?.at(row), finish?.at(row)];
      if (typeof from !== 'bigint' || typeof to !== 'bigint') return;
      const ofRun = run ? String(run.at(row)) : null;
      const shift = trace.shiftOf(ofRun ?? '');
      if (shift === null) return;
      const lane = location ? trace.laneOf(String(location.at(row)), ofRun) : -1;
      if (lane >= 0) this.guide.timeline.revealLane(lane, 0);
      this.guide.goTo({ from: from + shift, to: (to > from ? to : from + 1n) + shift });
    };
  }

  toggleLayer() {
    const sql = this.field.value;
    this.scene.state.set({ layerSql: this.scene.state.now.layerSql === sql ? '' : sql });
  }

  save() {
    const title = (/^--\s*title:\s*(.+)$/m.exec(this.field.value)?.[1] ?? 'My query').trim();
    const text = /^--\s*title:/m.test(this.field.value) ? this.field.value : `-- title: ${title}\n-- topic: mine\n--\n${this.field.value}`;
    saveFile(`${title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'query'}.sql`, 'application/sql', `${text.trimEnd()}\n`);
  }

  async copy() {
    if (!this.grid) return;
    try {
      await navigator.clipboard.writeText(this.grid.csv());
      this.message.append(make('span', { class: 'pale' }, ' · copied'));
    } catch {
      saveFile('answer.csv', 'text/csv', this.grid.csv());
    }
  }
}
