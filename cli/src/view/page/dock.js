/**
 * The dock beside or below the timeline: its tabs, its size, its side, and the edges that the reader drags or moves with
 * arrow keys.
 */

import { byId, part } from './dom.js';
/** @import { State, Tab } from './state.js' */
/** @import { Timeline } from './timeline.js' */

/** @typedef {{element: HTMLElement, isVertical: () => boolean, get: () => number, set: (size: number) => void, way: 1 | -1}} Edge */

const TAB_NAMES = /** @type {('task' | 'range' | 'sql')[]} */ (['task', 'range', 'sql']);
const WIDE = 1800;
const EDGE_STEP = 24;

export class Dock {
  /** @param {State} state @param {Timeline} timeline */
  constructor(state, timeline) {
    this.state = state;
    this.timeline = timeline;
    for (const name of TAB_NAMES) part(`tab-${name}`).addEventListener('click', () => state.set({ tab: name }));
    part('tabs').addEventListener('keydown', (event) => this.tabKey(event));
    part('dock-close').addEventListener('click', () => state.set({ tab: '' }));
    part('dock-side').addEventListener('click', () => state.set({ dock: this.isRight ? 'bottom' : 'right', size: 0 }));
    dragEdge({
      element: part('splitter'), isVertical: () => this.isRight, way: -1, get: () => this.size,
      set: (size) => state.set({ size: Math.min(Math.max(size, 120), this.room - 120) }),
    });
    dragEdge({
      element: part('names-edge'), isVertical: () => true, way: 1, get: () => state.now.names || 240,
      set: (names) => state.set({ names: Math.min(Math.max(names, 90), 600) }),
    });
    state.on(['tab', 'dock', 'size'], () => this.show());
    state.on(['names'], () => { part('names-edge').setAttribute('aria-valuenow', String(state.now.names)); timeline.request(); });
    addEventListener('resize', () => this.show());
    this.show();
  }

  get isRight() {
    return (this.state.now.dock || (innerWidth >= WIDE ? 'right' : 'bottom')) === 'right';
  }

  get room() {
    return this.isRight ? innerWidth : part('main').clientHeight;
  }

  get size() {
    return Math.min(this.state.now.size || (this.isRight ? Math.max(innerWidth * 0.3, 480) : this.room * (this.state.now.tab === 'task' ? 0.36 : 0.48)), this.room - 120);
  }

  show() {
    const { tab } = this.state.now;
    const wasHidden = part('dock').hidden;
    part('main').className = this.isRight ? 'right' : '';
    part('dock').hidden = part('splitter').hidden = tab === '';
    part('dock').style.setProperty('--size', `${this.size}px`);
    part('dock-side').textContent = this.isRight ? 'Dock below' : 'Dock right';
    part('splitter').setAttribute('aria-orientation', this.isRight ? 'vertical' : 'horizontal');
    part('splitter').setAttribute('aria-valuenow', String(Math.round(this.size)));
    for (const name of TAB_NAMES) {
      const button = byId(`tab-${name}`, HTMLButtonElement);
      button.setAttribute('aria-selected', String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      part(`panel-${name}`).hidden = name !== tab;
    }
    part('show-range').setAttribute('aria-pressed', String(tab === 'range'));
    part('show-sql').setAttribute('aria-pressed', String(tab === 'sql'));
    if (tab === 'sql' && (wasHidden || this.shown !== 'sql') && this.shown !== undefined) part('panel-sql').querySelector('textarea')?.focus();
    if (tab === '' && !wasHidden && document.activeElement === document.body) this.timeline.canvas.focus();
    this.shown = tab;
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const at = TAB_NAMES.findIndex((name) => name === this.state.now.tab);
    const way = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!way || !(event.target instanceof HTMLElement) || event.target.role !== 'tab') return;
    const tab = TAB_NAMES[(at + way + TAB_NAMES.length) % TAB_NAMES.length];
    this.state.set({ tab });
    part(`tab-${tab}`).focus();
    event.preventDefault();
  }
}

/** Lets the pointer and arrow keys move an edge. @param {Edge} edge */
function dragEdge({ element, isVertical, get, set, way }) {
  let grip = NaN;
  const place = (/** @type {PointerEvent} */ event) => (isVertical() ? event.clientX : event.clientY);
  element.addEventListener('pointerdown', (event) => {
    element.setPointerCapture(event.pointerId);
    grip = get() - way * place(event);
  });
  element.addEventListener('pointermove', (event) => { if (!Number.isNaN(grip)) set(Math.round(grip + way * place(event))); });
  element.addEventListener('pointerup', () => { grip = NaN; });
  element.addEventListener('keydown', (event) => {
    const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!steps) return;
    set(get() + way * steps * EDGE_STEP);
    event.preventDefault();
    event.stopPropagation();
  });
}
