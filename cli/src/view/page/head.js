/**
 * The head of the page and the line below the timeline: title and facts, search, layers, order, theme, help, and what is
 * told of the selection.
 */

import { byId, make, part, showError, visible } from './dom.js';
import { enclosed, isAnswered } from './enclosed.js';
import { KEY_HELP, POINTER_HELP } from './hands.js';
import { LAYER_TITLES, layersOf, PATH_LAYER } from './layers.js';
import { valueText } from './series.js';
import { grouped } from './ticks.js';
import { address } from './wire.js';
/** @import { Guide } from './guide.js' */
/** @import { Colour, Order } from './state.js' */
/** @import { Scene, Timeline } from './timeline.js' */

const SEARCH_PAUSE = 250;
/** Keys that ask the server. */
const ASKING_KEYS = ['Q', 'R', '[', ']'];

export class Head {
  /** @param {Scene} scene @param {Timeline} timeline @param {Guide} guide */
  constructor(scene, timeline, guide) {
    this.scene = scene;
    this.timeline = timeline;
    this.guide = guide;
    this.showFacts();
    this.connectSearch();
    this.connectLayers();
    this.connectSwitches();
    this.showNotice();
  }

  showFacts() {
    const { info, clock, bounds, isEmpty } = this.scene.trace;
    document.title = `${info.title} · tq view`;
    part('title').textContent = part('title').title = visible(info.title);
    const tasks = `${grouped(info.tasks)} ${info.tasks === '1' ? 'task' : 'tasks'}`;
    const runs = info.runs.length > 1 ? `${info.runs.length} runs` : info.runs[0]?.format;
    const { lost, repaired, left_out: leftOut } = info;
    const read = [lost && `${grouped(lost)} lost`, repaired && `${grouped(repaired)} repaired`].filter(Boolean).join(', ');
    part('facts').textContent = [tasks, leftOut && `${grouped(leftOut)} not drawn`, isEmpty ? '' : clock.text(bounds.to - bounds.from), runs,
      read && `${read} while reading`].filter(Boolean).join(' · ');
    part('facts').title = [leftOut && 'Not drawn: tasks without a start, and those of the recorder itself.',
      read && 'What was lost or repaired: SELECT * FROM import_stats.'].filter(Boolean).join(' ');
  }

  showNotice() {
    const notice = part('notice');
    notice.hidden = !this.scene.trace.isEmpty || this.scene.tree.hasCounters;
    const open = (/** @type {string} */ text, /** @type {'range' | 'sql'} */ tab) =>
      make('button', { type: 'button', onclick: () => this.scene.state.set({ tab }) }, text);
    notice.replaceChildren(make('span', {}, `The trace has no tasks with times, so there is nothing to draw.${enclosed ? '' : ' Its tables still answer:'}`));
    if (!enclosed) notice.append(make('span', { class: 'chips' }, open('Saved queries', 'range'), open('SQL', 'sql')));
  }

  connectSearch() {
    const { state } = this.scene;
    const field = byId('search', HTMLInputElement);
    let timer = 0;
    const take = () => state.set({ search: field.value });
    field.value = state.now.search;
    field.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(take, SEARCH_PAUSE); });
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { field.value = ''; take(); this.timeline.canvas.focus(); }
      if (event.key !== 'Enter') return;
      if (state.now.search === field.value) this.guide.stepHit(event.shiftKey ? -1 : 1);
      else take();
      // n and N go on from there.
      if (field.value) this.timeline.canvas.focus();
    });
    state.on(['search'], () => { this.guide.hit = -1; if (document.activeElement !== field) field.value = state.now.search; });
    part('hit-back').addEventListener('click', () => this.guide.stepHit(-1));
    part('hit-on').addEventListener('click', () => this.guide.stepHit(1));
  }

  showHits() {
    const { hits, isPartial, searchError } = this.scene.layers;
    const field = part('search');
    field.setAttribute('aria-invalid', String(Boolean(searchError)));
    const place = this.guide.hit < 0 ? '' : `${grouped(this.guide.hit + 1)} / `;
    const count = hits && `${isPartial ? 'at least ' : ''}${grouped(hits.count)} ${hits.count === '1' ? 'hit' : 'hits'}`;
    const found = hits ? `${place}${count}, ${this.scene.trace.clock.text(hits.total ?? 0n)}` : '';
    setText(part('hits'), searchError || (isPartial && hits?.count === '0' ? 'no hits outside of sums' : found));
    part('hit-back').hidden = part('hit-on').hidden = !hits?.starts.length;
  }

  connectLayers() {
    const { state, trace } = this.scene;
    for (const [name, title] of layersOf(trace)) {
      if (!isAnswered(address('layer', { name }))) continue;
      part('layers').append(make('button', { type: 'button', disabled: trace.isEmpty, 'data-layer': name, onclick: () => this.toggleLayer(name) }, title));
    }
    state.on(['layers'], () => this.showLayers());
    this.showLayers();
  }

  /** @param {string} name */
  toggleLayer(name) {
    const { state } = this.scene;
    const { layers } = state.now;
    state.set({ layers: layers.includes(name) ? layers.filter((other) => other !== name) : [...layers, name] });
  }

  showLayers() {
    for (const button of part('layers').querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(this.scene.state.now.layers.includes(button.dataset.layer ?? '')));
    }
  }

  connectSwitches() {
    const { state, view } = this.scene;
    const order = byId('order', HTMLSelectElement);
    const showOrder = () => { order.value = state.now.order; part('unhide').hidden = !state.now.hidden.length; };
    order.addEventListener('change', () => state.set({ order: /** @type {Order} */ (order.value) }));
    state.on(['order', 'hidden'], showOrder);
    showOrder();
    this.scene.layers.listeners.push((name) => { if (name === PATH_LAYER) this.explainPath(); });
    this.connectColour();
    this.connectAlign();
    if (!this.scene.trace.info.has_dependencies || !isAnswered(address('layer', { name: PATH_LAYER }))) this.forgetPath();
    part('unhide').addEventListener('click', () => state.set({ hidden: [] }));
    part('home').addEventListener('click', () => view.show(view.home));
    part('show-sql').addEventListener('click', () => state.set({ tab: state.now.tab === 'sql' ? '' : 'sql' }));
    part('show-range').addEventListener('click', () => state.set({ tab: state.now.tab === 'range' ? '' : 'range' }));
    const theme = part('theme');
    const showTheme = () => { theme.textContent = { '': 'Auto', light: 'Light', dark: 'Dark' }[state.now.theme]; theme.setAttribute('aria-label', `Theme: ${theme.textContent}`); };
    theme.addEventListener('click', () => state.set({ theme: /** @type {const} */ ({ '': 'light', light: 'dark', dark: '' })[state.now.theme] }));
    state.on(['theme'], showTheme);
    showTheme();
    part('help').addEventListener('click', showHelp);
  }

  /** No order by the critical path is offered; whether it was the one. */
  forgetPath() {
    const { state } = this.scene;
    const option = byId('order', HTMLSelectElement).querySelector('[value=path]');
    if (option instanceof HTMLOptionElement) Object.assign(option, { disabled: true, textContent: 'no critical path' });
    const wasIt = state.now.order === 'path';
    if (wasIt) state.set({ order: 'sort_index' });
    return wasIt;
  }

  /** Where nothing depends on anything, lanes have no order by the critical path. */
  explainPath() {
    const { layers } = this.scene;
    if (layers.loaded.get(PATH_LAYER)?.starts.length !== 0) return;
    if (this.forgetPath()) showError({ message: 'The trace has no critical path to order by: its tasks have no dependencies.' });
  }

  connectColour() {
    const { state, trace } = this.scene;
    const colour = byId('colour', HTMLSelectElement);
    const show = () => { colour.value = state.now.colour; };
    colour.disabled = trace.isEmpty;
    colour.addEventListener('change', () => {
      state.set({ colour: /** @type {Colour} */ (colour.value) });
      // There the layer is made.
      if (state.now.colour === 'layer' && !state.now.layerSql) state.set({ tab: 'sql' });
    });
    state.on(['colour'], show);
    show();
  }

  connectAlign() {
    const { state, trace } = this.scene;
    const button = part('align');
    const show = () => button.setAttribute('aria-pressed', String(state.now.aligned));
    button.hidden = !trace.hasRuns || !trace.info.aligned || enclosed !== null;
    // What was selected is elsewhere then.
    button.addEventListener('click', () => state.set({ aligned: !state.now.aligned, view: null, range: null, marks: [] }));
    state.on(['aligned'], show);
    show();
  }

  /** The line below the timeline, and the length of what is visible. */
  showStatus() {
    const { view, trace, tiles, counters, layers } = this.scene;
    const { from, to } = view.range;
    setText(part('span'), `${trace.clock.text(to - from)} shown`);
    setText(part('told'), this.told());
    setText(part('sums'), this.timeline.hasSums ? enclosed?.detail ?? 'Lighter columns are summed up: tasks shorter than 2 px' : '');
    const paths = layers.shown.map(({ spans }) => layerText(spans, trace)).join(' · ');
    const computed = [...layers.loading].map((name) => LAYER_TITLES[name] ?? name).join(', ');
    setText(part('loading'), computed ? `Computing ${computed} …` : tiles.isLoading || counters.isLoading ? 'Loading …' : paths);
    this.showHits();
  }

  told() {
    const { selection, state, trace } = this.scene;
    const { info } = selection;
    const { hovered } = this.timeline;
    if (hovered?.kind === 'instant') return `${hovered.label || '(unnamed)'} at ${trace.clock.exact(hovered.at)}`;
    if (hovered?.kind === 'counter') return `${hovered.series.name}: ${valueText(hovered.value, hovered.series.unit)} at ${trace.clock.exact(hovered.at)}`;
    if (info && state.now.task !== null) {
      const span = info.duration === null ? 'never ended' : trace.clock.text(BigInt(info.duration));
      return `Selected: ${info.name || '(unnamed)'}, ${span}, from ${trace.clock.text(BigInt(info.start ?? 0))} on ${info.location}`;
    }
    const { range } = state.now;
    if (range) return `Selected range: ${trace.clock.text(range.to - range.from)} from ${trace.clock.text(range.from)}`;
    return 'Nothing selected';
  }
}

/** @param {HTMLElement} element @param {string} text */
function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

export function showHelp() {
  const dialog = byId('help-dialog', HTMLDialogElement);
  const list = (/** @type {[string, string][]} */ keys) =>
    make('dl', { class: 'keys' }, ...keys.flatMap(([key, meaning]) => [make('dt', {}, key), make('dd', {}, meaning)]));
  dialog.replaceChildren(
    make('header', {}, make('h2', { id: 'help-title' }, 'Keys and pointer'),
      make('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => dialog.close() }, '×')),
    list(KEY_HELP.filter(([key]) => !enclosed || !ASKING_KEYS.includes(key))), make('h3', {}, 'Pointer'), list(POINTER_HELP),
    make('h3', {}, 'Lanes'),
    make('p', { class: 'pale' }, 'In the tree at the left: arrows move, open and close; P pins a lane to the top, H hides it. The strips below a lane are its counters; point at one to read its value. The address of the page keeps all of this: copy it to share what you see.'),
    enclosed?.detail ? make('p', { class: 'pale' }, enclosed.detail) : '');
  if (!dialog.open) dialog.showModal();
}

/** @param {import('./overlays.js').Spans} spans @param {import('./trace.js').Trace} trace */
function layerText({ title, starts, total }, trace) {
  if (!starts.length) return `${title}: nothing to show`;
  return total === null ? title : `${title}: ${trace.clock.text(total)}`;
}
