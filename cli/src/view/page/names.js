/**
 * The column of lane names at the left: a tree for the keyboard and for screen readers, of which only the rows in sight are
 * in the document. Each row has its triangle, its name, a small bar of how busy it was (a counter: the range of its values),
 * and buttons to pin and to hide it.
 */

import { make, part } from './dom.js';
import { isGroup } from './lanes.js';
import { rangeText } from './series.js';
import { percent } from './ticks.js';
/** @import { LaneRow, LaneTree, Layout } from './lanes.js' */
/** @import { State } from './state.js' */

const OVERSCAN = 200;

export class Names {
  /** @param {State} state @param {LaneTree} tree */
  constructor(state, tree) {
    this.state = state;
    this.tree = tree;
    this.list = part('names');
    this.pinnedList = part('pinned-names');
    /** @type {Layout | null} */
    this.layout = null;
    /** @type {Map<LaneRow, HTMLElement>} */
    this.items = new Map();
    /** The id of the node that Tab reaches. */
    this.current = -1;
    for (const list of [this.list, this.pinnedList]) {
      list.addEventListener('click', (event) => this.click(event));
      list.addEventListener('keydown', (event) => this.key(event));
      list.addEventListener('focusin', (event) => this.focused(event));
    }
  }

  /** Puts the rows in sight into the document. @param {Layout} layout @param {number} scrolled @param {number} height */
  show(layout, scrolled, height) {
    if (layout !== this.layout) this.reset(layout);
    const inSight = layout.rows.filter((row) => row.y + row.height > scrolled - OVERSCAN && row.y < scrolled + height + OVERSCAN);
    const wanted = new Set(inSight);
    for (const [row, item] of this.items) {
      if (wanted.has(row) || item.contains(document.activeElement)) continue;
      item.remove();
      this.items.delete(row);
    }
    for (const row of inSight) if (!this.items.has(row)) this.add(row, this.list);
  }

  /** @param {Layout} layout */
  reset(layout) {
    const hadFocus = this.list.contains(document.activeElement) || this.pinnedList.contains(document.activeElement);
    this.layout = layout;
    this.items.clear();
    this.list.replaceChildren();
    this.pinnedList.replaceChildren();
    this.pinnedList.style.height = `${layout.pinnedHeight}px`;
    this.pinnedList.hidden = !layout.pinned.length;
    this.list.style.top = `${layout.pinnedHeight}px`;
    this.list.style.setProperty('--pinned', `${layout.pinnedHeight}px`);
    if (!layout.rows.some((row) => row.node.id === this.current)) this.current = layout.rows[0]?.node.id ?? -1;
    for (const row of layout.pinned) this.pinnedList.append(this.item(row));
    const again = hadFocus && layout.rows.find((row) => row.node.id === this.current);
    if (again) this.add(again, this.list).focus({ preventScroll: true });
  }

  /** @param {LaneRow} row @param {HTMLElement} list */
  add(row, list) {
    const item = this.item(row);
    this.items.set(row, item);
    list.append(item);
    return item;
  }

  /** @param {LaneRow} row */
  item(row) {
    const { node } = row;
    const share = this.tree.busyShare(node);
    const item = make('div', {
      class: `lane${isGroup(node) ? ' group' : ''}${node.kind.startsWith('counter') ? ' counter' : node.hasTasks ? '' : ' idle'}`, role: row.isPinned ? 'group' : 'treeitem',
      title: this.tree.describe(node), tabIndex: !row.isPinned && node.id === this.current ? 0 : -1, 'data-node': node.id,
      'aria-level': row.isPinned ? null : row.level + 1, 'aria-expanded': row.hasMore && !row.isPinned ? String(row.isOpen) : null,
    },
    make('span', { class: `triangle${row.hasMore ? (row.isOpen ? ' open' : ' closed') : ''}`, 'aria-hidden': 'true', 'data-do': 'toggle' }),
    make('span', { class: 'title' }, row.isPinned ? this.tree.trace.placeOf(node.id) : node.title,
      node.series && make('span', { class: 'values' }, rangeText(node.series))),
    share === null ? null : make('span', { class: 'busy' }, busyBar(share), make('span', {}, percent(share))),
    (node.lane || node.series) && this.actions(row));
    item.style.top = `${row.y}px`;
    item.style.height = `${row.height}px`;
    item.style.setProperty('--level', String(row.level));
    return item;
  }

  /** @param {LaneRow} row */
  actions({ node }) {
    const isPinned = this.state.now.pins.includes(node.id);
    const action = (/** @type {string} */ what, /** @type {string} */ text) =>
      make('button', { type: 'button', tabIndex: -1, 'data-do': what, 'aria-label': `${text} ${node.title}` }, text);
    return make('span', { class: 'actions' }, node.lane && action('pin', isPinned ? 'Unpin' : 'Pin'), action('hide', 'Hide'));
  }

  /** @param {Event} event @returns {number} the node of the row */
  nodeOf(event) {
    const item = event.target instanceof Element ? event.target.closest('[data-node]') : null;
    return item instanceof HTMLElement ? Number(item.dataset.node) : -1;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const node = this.nodeOf(event);
    const target = event.target instanceof Element ? event.target.closest('[data-do]') : null;
    const what = target instanceof HTMLElement ? target.dataset.do : 'toggle';
    if (node >= 0) this.act(node, what ?? '');
  }

  /** @param {number} id @param {string} what */
  act(id, what) {
    const row = [...(this.layout?.rows ?? []), ...(this.layout?.pinned ?? [])].find((other) => other.node.id === id);
    if (!row) return;
    if (what === 'pin' && row.node.lane) this.state.put('pins', id, !this.state.now.pins.includes(id));
    if (what === 'hide') this.state.put('hidden', id, true);
    if (what === 'toggle' && row.hasMore) this.setOpen(id, !row.isOpen);
  }

  /** @param {number} id @param {boolean} isOpen */
  setOpen(id, isOpen) {
    const { open, closed } = this.state.now;
    const [others, othersClosed] = [open, closed].map((list) => list.filter((other) => other !== id));
    this.state.set(isOpen ? { open: [...others, id], closed: othersClosed } : { open: others, closed: [...othersClosed, id] });
  }

  /** @param {FocusEvent} event */
  focused(event) {
    const node = this.nodeOf(event);
    if (node < 0 || node === this.current) return;
    for (const item of this.items.values()) item.tabIndex = item === event.target ? 0 : -1;
    this.current = node;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const rows = this.layout?.rows ?? [];
    const at = rows.findIndex((row) => row.node.id === this.current);
    const row = rows[at];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.keyed(event.key, rows, at, row)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key @param {LaneRow[]} rows @param {number} at @param {LaneRow} row @returns {boolean} whether the key means something here */
  keyed(key, rows, at, row) {
    const id = row.node.id;
    if (key === 'ArrowDown') this.focus(rows[at + 1]);
    else if (key === 'ArrowUp') this.focus(rows[at - 1]);
    else if (key === 'Home') this.focus(rows[0]);
    else if (key === 'End') this.focus(rows[rows.length - 1]);
    else if (key === 'ArrowRight') row.hasMore && !row.isOpen ? this.setOpen(id, true) : this.focus(rows[at + 1]);
    else if (key === 'ArrowLeft') row.hasMore && row.isOpen ? this.setOpen(id, false) : this.focus(rows.slice(0, at).reverse().find((above) => above.level < row.level));
    else if (key === 'Enter' || key === ' ') this.act(id, 'toggle');
    else if (key === 'p') this.act(id, 'pin');
    else if (key === 'h' || key === 'Delete') this.act(id, 'hide');
    else return false;
    return true;
  }

  /** @param {LaneRow | undefined} row */
  focus(row) {
    if (!row) return;
    const item = this.items.get(row) ?? this.add(row, this.list);
    item.focus();
    item.scrollIntoView({ block: 'nearest' });
  }
}

/** @param {number} share */
function busyBar(share) {
  const bar = make('span', { class: 'bar' }, make('i'));
  bar.style.setProperty('--share', String(Math.min(share, 1)));
  return bar;
}
