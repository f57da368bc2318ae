/**
 * A table of an answer that may have a hundred thousand rows: only those in sight are in the document. Headings sort, rows
 * that name a task or a span of time go there, arrow keys move from row to row.
 */

import { make } from './dom.js';
import { grouped } from './ticks.js';
/** @import { Clock } from './ticks.js' */
/** @import { Cell, Column, Table } from './wire.js' */

const GRID_ROW = 24;
const GRID_OVERSCAN = 12;
const SAMPLED_ROWS = 200;
const MOST_HEIGHT = 8e6;

export class Grid {
  /** @param {Table} table @param {Clock} clock @param {((row: number) => void) | null} jump */
  constructor(table, clock, jump) {
    this.table = table;
    this.clock = clock;
    this.jump = jump;
    this.order = Uint32Array.from({ length: table.rows }, (_, row) => row);
    this.sorted = { column: -1, isDown: false };
    this.widths = table.columns.map((column) => this.widthOf(column));
    this.head = make('div', { role: 'row', 'aria-rowindex': 1 });
    this.head.style.width = `${this.widths.reduce((sum, width) => sum + width, 0)}px`;
    this.body = make('div', { role: 'rowgroup' });
    this.body.style.cssText = `position:relative;height:${Math.min(table.rows * GRID_ROW, MOST_HEIGHT)}px`;
    this.element = make('div', {
      class: 'grid-table', role: 'table', tabIndex: 0, 'aria-label': 'Answer', 'aria-rowcount': table.rows + 1, 'aria-colcount': table.columns.length,
      onscroll: () => this.show(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    }, make('div', { role: 'rowgroup', class: 'head' }, this.head), this.body);
    this.showHead();
    new ResizeObserver(() => this.show()).observe(this.element);
  }

  /** @param {Column} column */
  widthOf(column) {
    let letters = column.name.length + 3;
    const step = Math.max(Math.floor(this.table.rows / SAMPLED_ROWS), 1);
    for (let row = 0; row < this.table.rows; row += step) letters = Math.max(letters, this.text(column, row).length);
    return Math.min(Math.max(letters * 7 + 22, 60), 420);
  }

  /** @param {Column} column @param {number} row */
  text(column, row) {
    const cell = column.at(row);
    if (cell === null) return 'NULL';
    if (typeof cell === 'bigint') {
      if (column.is === 'duration') return this.clock.text(cell);
      if (column.is === 'instant') return this.clock.exact(cell);
      return column.is === 'task' ? String(cell) : grouped(cell);
    }
    if (typeof cell === 'number') return Number.isInteger(cell) ? grouped(cell) : String(Number(cell.toPrecision(6)));
    return cell;
  }

  showHead() {
    this.head.replaceChildren(...this.table.columns.map((column, at) => {
      const isSorted = this.sorted.column === at;
      const cell = make('div', { role: 'columnheader', 'aria-sort': isSorted ? (this.sorted.isDown ? 'descending' : 'ascending') : 'none' },
        make('button', { type: 'button', class: column.texts ? '' : 'number', onclick: () => this.sort(at) },
          `${column.name}${isSorted ? (this.sorted.isDown ? ' ↓' : ' ↑') : ''}`));
      cell.style.width = `${this.widths[at]}px`;
      return cell;
    }));
  }

  /** Sorts by a column: upwards, downwards, as answered. @param {number} at */
  sort(at) {
    const { column, isDown } = this.sorted;
    this.sorted = column !== at ? { column: at, isDown: false } : isDown ? { column: -1, isDown: false } : { column: at, isDown: true };
    this.order = this.order.sort((a, b) => a - b);
    if (this.sorted.column >= 0) this.order = this.sortedOrder(this.table.columns[at], this.sorted.isDown ? -1 : 1);
    this.showHead();
    this.body.replaceChildren();
    this.show();
    this.head.querySelectorAll('button')[at].focus();
  }

  /** NULLs last in both directions. @param {Column} column @param {number} way */
  sortedOrder(column, way) {
    const cells = Array.from(this.order, (_, row) => column.at(row));
    return this.order.sort((a, b) => {
      const [left, right] = [cells[a], cells[b]];
      if (left === right) return a - b;
      if (left === null || right === null) return left === null ? 1 : -1;
      return left < right ? -way : way;
    });
  }

  /** Where a row is; very long tables are squeezed into the height that browsers can scroll. @param {number} scrollTop */
  firstRow(scrollTop) {
    const all = this.table.rows * GRID_ROW;
    if (all <= MOST_HEIGHT) return scrollTop / GRID_ROW;
    const share = scrollTop / Math.max(MOST_HEIGHT - this.element.clientHeight, 1);
    return share * (this.table.rows - this.element.clientHeight / GRID_ROW);
  }

  show() {
    const { scrollTop, clientHeight } = this.element;
    const exact = this.firstRow(scrollTop);
    const first = Math.max(Math.floor(exact) - GRID_OVERSCAN, 0);
    const end = Math.min(Math.ceil(exact + clientHeight / GRID_ROW) + GRID_OVERSCAN, this.table.rows);
    const focused = this.body.contains(document.activeElement) ? Number(/** @type {HTMLElement} */ (document.activeElement).dataset.at) : -1;
    const rows = [];
    for (let at = first; at < end; at++) rows.push(this.row(at, scrollTop + (at - exact) * GRID_ROW));
    this.body.replaceChildren(...rows);
    if (focused >= first && focused < end) rows[focused - first].focus({ preventScroll: true });
  }

  /** @param {number} at @param {number} top */
  row(at, top) {
    const row = this.order[at];
    const cells = this.table.columns.map((column, index) => {
      const isNull = column.at(row) === null;
      const cell = make('div', { role: 'cell', class: `${column.texts ? '' : 'number'}${isNull ? ' null' : ''}` }, this.text(column, row));
      cell.style.width = `${this.widths[index]}px`;
      return cell;
    });
    const go = this.jump && (() => this.jump?.(row));
    const element = make('div', { role: 'row', class: go ? 'jump' : '', tabIndex: -1, 'aria-rowindex': at + 2, 'data-at': at, onclick: go }, ...cells);
    element.style.top = `${top}px`;
    return element;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const at = target.dataset.at === undefined ? -1 : Number(target.dataset.at);
    if (target.tagName === 'BUTTON') return;
    if (event.key === 'ArrowDown') this.focus(at < 0 ? Math.ceil(this.firstRow(this.element.scrollTop)) : at + 1);
    else if (event.key === 'ArrowUp') this.focus(at - 1);
    else if (event.key === 'Enter' && at >= 0) this.jump?.(this.order[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} at */
  focus(at) {
    const row = /** @type {HTMLElement | null} */ (this.body.querySelector(`[data-at="${at}"]`));
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  }

  /** The rows in their order, as CSV with exact values. */
  csv() {
    const quoted = (/** @type {Cell} */ cell) => {
      const text = cell === null ? '' : String(cell);
      return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const { columns } = this.table;
    const lines = [columns.map((column) => quoted(column.name)).join(',')];
    for (const row of this.order) lines.push(columns.map((column) => quoted(column.at(row))).join(','));
    return `${lines.join('\n')}\n`;
  }
}
