/**
 * Input on the timeline: wheel, pointer and keys. The wheel scrolls rows, with Ctrl it zooms at the pointer, sideways or
 * with Shift it pans; dragging selects a range, with Shift it pans; a click selects a task. A finger pans, two zoom.
 */

import { isTyping, part } from './dom.js';
import { showTip } from './tip.js';
/** @import { Guide } from './guide.js' */
/** @import { Scene, Timeline } from './timeline.js' */

const CLICK_ROOM = 4;
const PAN_SHARE = 0.18;
const KEY_ZOOM = 0.7;
/** The keys, as the help lists them. @type {[string, string][]} */
export const KEY_HELP = [
  ['W, ↑ with Ctrl', 'zoom in at the pointer'], ['S, ↓ with Ctrl', 'zoom out'], ['A, ←', 'pan left'], ['D, →', 'pan right'],
  ['↑ ↓, Page up, Page down', 'scroll the lanes'], ['Home', 'the whole trace'], ['F', 'zoom to what is selected'],
  ['M', 'set or remove a mark'], ['[', 'go to what released the selected task'], [']', 'go to what it releases'],
  [', .', 'previous or next task in the row'], ['< >', 'nearest task in the row above or below'],
  ['/', 'search names with a regular expression'], ['n, N', 'next or previous hit'], ['Q', 'open or close the SQL editor'],
  ['R', 'summary of the selected range'], ['?', 'this list'], ['Escape', 'let go of what is selected'],
];
/** @type {[string, string][]} */
export const POINTER_HELP = [
  ['Wheel', 'scroll the lanes'], ['Ctrl + wheel', 'zoom at the pointer'], ['Shift + wheel', 'pan'], ['Drag', 'select a range of time'],
  ['Shift + drag, a finger', 'pan'], ['Two fingers', 'zoom'], ['Click', 'select a task'], ['Double click', 'zoom to a task'],
];

export class Hands {
  /** @param {Scene} scene @param {Timeline} timeline @param {Guide} guide @param {() => void} help */
  constructor(scene, timeline, guide, help) {
    this.scene = scene;
    this.timeline = timeline;
    this.guide = guide;
    this.help = help;
    /** Where the pointer is over the canvas, in pixels; null elsewhere. @type {number | null} */
    this.pointer = null;
    /** @type {{id: number, x: number, y: number, anchor: bigint, isPan: boolean, isDrag: boolean} | null} */
    this.press = null;
    /** Where fingers are, by pointer. @type {Map<number, number>} */
    this.fingers = new Map();
    const { canvas, rulerCanvas } = timeline;
    for (const surface of [canvas, rulerCanvas]) {
      surface.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
      surface.addEventListener('pointerdown', (event) => this.down(event));
      surface.addEventListener('pointermove', (event) => this.moved(event));
      surface.addEventListener('pointerup', (event) => this.up(event));
      surface.addEventListener('pointercancel', (event) => { this.press = null; this.fingers.delete(event.pointerId); });
      surface.addEventListener('pointerleave', () => this.left());
    }
    canvas.addEventListener('dblclick', () => this.guide.zoomToSelection());
    addEventListener('keydown', (event) => this.key(event));
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { view } = this.scene;
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1;
    if (event.ctrlKey || event.metaKey) {
      view.zoom(Math.exp(Math.max(Math.min(event.deltaY * lines, 120), -120) * 0.0045), event.offsetX);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.pan((event.deltaX || event.deltaY) * lines, true);
    } else return;
    event.preventDefault();
    this.left();
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button > 1) return;
    const { view } = this.scene;
    const isFinger = event.pointerType === 'touch';
    if (isFinger) this.fingers.set(event.pointerId, event.offsetX);
    const isPan = isFinger || event.shiftKey || event.button === 1;
    this.press = { id: event.pointerId, x: event.offsetX, y: event.offsetY, anchor: view.tick(event.offsetX), isPan, isDrag: false };
    /** @type {Element} */ (event.target).setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  moved(event) {
    const { offsetX, offsetY } = event;
    if (this.fingers.size > 1) return this.pinch(event);
    this.pointer = offsetX;
    const { press } = this;
    if (!press) return this.hover(event);
    if (!press.isDrag && Math.hypot(offsetX - press.x, offsetY - press.y) < CLICK_ROOM) return;
    press.isDrag = true;
    showTip(null, this.scene.trace, 0, 0);
    if (press.isPan) this.drag(press, offsetX, offsetY);
    else this.stretch(press.anchor, this.scene.view.tick(offsetX));
  }

  /** Two fingers keep below them what was there. @param {PointerEvent} event */
  pinch({ pointerId, offsetX }) {
    const before = this.fingers.get(pointerId);
    const other = [...this.fingers].find(([id]) => id !== pointerId)?.[1];
    if (before === undefined || other === undefined) return;
    this.fingers.set(pointerId, offsetX);
    this.press = null;
    const [was, is] = [before, offsetX].map((x) => Math.max(Math.abs(x - other), 1));
    this.scene.view.zoom(was / is, other, true);
  }

  /** @param {{x: number, y: number}} press @param {number} x @param {number} y */
  drag(press, x, y) {
    this.scene.view.pan(press.x - x, true);
    this.timeline.scroller.scrollTop += press.y - y;
    press.x = x;
    press.y = y;
  }

  /** @param {bigint} a @param {bigint} b */
  stretch(a, b) {
    const [from, to] = a < b ? [a, b] : [b, a];
    if (from < to) this.scene.state.set({ range: { from, to } });
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const hit = event.target === this.timeline.canvas ? this.timeline.sight(event.offsetX, event.offsetY) : null;
    this.timeline.hover(hit);
    this.timeline.canvas.style.cursor = hit?.kind === 'task' ? 'pointer' : 'default';
    showTip(hit, this.scene.trace, event.clientX, event.clientY);
  }

  /** @param {PointerEvent} event */
  up(event) {
    const { press } = this;
    this.press = null;
    this.fingers.delete(event.pointerId);
    if (!press) return;
    const { state } = this.scene;
    if (press.isDrag) {
      if (!press.isPan) state.set({ tab: 'range' });
      return;
    }
    const hit = event.target === this.timeline.canvas ? this.timeline.hit(event.offsetX, event.offsetY) : null;
    showTip(null, this.scene.trace, 0, 0);
    if (hit?.kind === 'task') this.guide.select(hit.task, false);
    else if (hit?.kind === 'sum') this.scene.view.zoom(0.25, event.offsetX);
    else state.set({ task: null, range: null });
  }

  left() {
    this.pointer = null;
    this.timeline.hover(null);
    showTip(null, this.scene.trace, 0, 0);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (isTyping(event.target) || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
      this.zoom(event.key === 'ArrowUp' ? KEY_ZOOM : 1 / KEY_ZOOM);
      return event.preventDefault();
    }
    const isElsewhere = event.target instanceof Element && event.target.closest('#dock, #bar, [role=separator]');
    if (isElsewhere && /^(Arrow|Page|Home|End)/.test(event.key)) return;
    const action = this.actions()[event.key] ?? this.actions()[event.key.toLowerCase()];
    if (!action) return;
    showTip(null, this.scene.trace, 0, 0);
    // What cannot scroll here may scroll the page around.
    if (action() !== false) event.preventDefault();
  }

  /** What each key does. @returns {Record<string, () => unknown>} */
  actions() {
    const { view, state } = this.scene;
    const { guide } = this;
    const page = this.timeline.height * 0.8;
    return {
      w: () => this.zoom(KEY_ZOOM), s: () => this.zoom(1 / KEY_ZOOM), a: () => view.pan(-view.width * PAN_SHARE), d: () => view.pan(view.width * PAN_SHARE),
      ArrowLeft: () => view.pan(-view.width * PAN_SHARE), ArrowRight: () => view.pan(view.width * PAN_SHARE),
      ArrowUp: () => this.scroll(-60), ArrowDown: () => this.scroll(60), PageUp: () => this.scroll(-page), PageDown: () => this.scroll(page),
      Home: () => view.show(view.home), f: () => guide.zoomToSelection(), m: () => guide.mark(view.tick(this.pointer ?? view.width / 2)),
      '[': () => guide.follow(-1), ']': () => guide.follow(1), ',': () => guide.walk('beside', -1), '.': () => guide.walk('beside', 1),
      '<': () => guide.walk('across', -1), '>': () => guide.walk('across', 1), n: () => guide.stepHit(1), N: () => guide.stepHit(-1),
      '/': () => part('search').focus(), '?': () => this.help(), Escape: () => guide.escape(),
      q: () => state.set({ tab: state.now.tab === 'sql' ? '' : 'sql' }), r: () => state.set({ tab: state.now.tab === 'range' ? '' : 'range' }),
    };
  }

  /** @param {number} factor */
  zoom(factor) {
    this.scene.view.zoom(factor, this.pointer ?? this.scene.view.width / 2);
  }

  /** @param {number} pixels @returns {boolean} whether there was something to scroll */
  scroll(pixels) {
    const { scroller } = this.timeline;
    const before = scroller.scrollTop;
    scroller.scrollTop += pixels;
    return scroller.scrollTop !== before;
  }
}
