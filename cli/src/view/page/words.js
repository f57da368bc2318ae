/**
 * Completion for the SQL editor: which words fit what stands before the caret, and the list below it from which the reader
 * chooses with arrows and Tab or Enter.
 */

import { make } from './dom.js';

/** @typedef {{tables: {name: string, columns: string[]}[], functions: {name: string, signature: string, doc: string}[], keywords: string[]}} Words */
/** @typedef {{text: string, note: string, rank: number}} Offer */

const MOST_OFFERS = 9;
const COMMON_TABLES = ['tasks', 'locations', 'links', 'runs'];
const LINE_HEIGHT = 18;
const LETTER_WIDTH = 7.22;

export class Completion {
  /** @param {HTMLTextAreaElement} field */
  constructor(field) {
    this.field = field;
    /** @type {Words} */
    this.words = { tables: [], functions: [], keywords: [] };
    /** @type {Offer[]} */
    this.offers = [];
    this.chosen = 0;
    this.list = make('ul', { class: 'words', id: 'words', role: 'listbox', 'aria-label': 'Completions', hidden: true });
    field.setAttribute('aria-autocomplete', 'list');
    field.setAttribute('aria-controls', 'words');
    field.after(this.list);
    field.addEventListener('input', () => this.offer());
    field.addEventListener('blur', () => this.close());
    field.addEventListener('click', () => this.close());
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** The word before the caret, and the table before its dot. */
  get typed() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const found = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*|)$/.exec(before);
    return { owner: found?.[1] ?? '', word: found?.[2] ?? '' };
  }

  offer() {
    const { owner, word } = this.typed;
    this.offers = word.length < (owner ? 0 : 1) ? [] : this.fitting(owner, word.toLowerCase());
    this.chosen = 0;
    if (!this.offers.length || (this.offers.length === 1 && this.offers[0].text === word)) return this.close();
    this.show();
  }

  /** @param {string} owner @param {string} word @returns {Offer[]} */
  fitting(owner, word) {
    return this.all(owner).filter(({ text }) => text.toLowerCase().startsWith(word) && text !== word)
      .sort((a, b) => b.rank - a.rank || a.text.length - b.text.length || (a.text < b.text ? -1 : 1)).slice(0, MOST_OFFERS);
  }

  /** All words; columns of tables that the query names come first. @param {string} owner @returns {Offer[]} */
  all(owner) {
    const { tables, functions, keywords } = this.words;
    const used = new Set(this.field.value.toLowerCase().match(/\w+/g) ?? []);
    const alias = new RegExp(`\\b(\\w+)\\s+(?:as\\s+)?${owner}\\b`, 'i').exec(this.field.value)?.[1]?.toLowerCase();
    const owned = tables.find(({ name }) => name === owner || name === alias);
    if (owner) return owned ? owned.columns.map((text) => ({ text, note: owned.name, rank: 1 })) : [];
    /** @type {Map<string, Offer>} */
    const columns = new Map();
    for (const { name, columns: texts } of tables) {
      const rank = used.has(name) ? 4 : COMMON_TABLES.includes(name) ? 3 : 0;
      for (const text of texts) if (rank > (columns.get(text)?.rank ?? -1)) columns.set(text, { text, note: name, rank });
    }
    return [
      ...columns.values(), ...tables.map(({ name }) => ({ text: name, note: 'table', rank: 2 })),
      ...functions.map(({ name, signature }) => ({ text: name, note: signature, rank: 1 })),
      ...keywords.map((text) => ({ text, note: '', rank: 2 })),
    ];
  }

  show() {
    this.list.replaceChildren(...this.offers.map(({ text, note }, at) => make('li', {
      role: 'option', id: `word-${at}`, 'aria-selected': at === this.chosen,
      onpointerdown: (/** @type {Event} */ event) => { event.preventDefault(); this.take(at); },
    }, make('span', {}, text), make('span', { class: 'pale' }, note))));
    const before = this.field.value.slice(0, this.field.selectionStart).split('\n');
    const column = before[before.length - 1].length - this.typed.word.length;
    this.list.style.left = `${Math.max(Math.min(column * LETTER_WIDTH + 8 - this.field.scrollLeft, this.field.clientWidth - 300), 0)}px`;
    this.list.style.top = `${before.length * LINE_HEIGHT + 10 - this.field.scrollTop}px`;
    this.list.hidden = false;
    this.field.setAttribute('aria-activedescendant', `word-${this.chosen}`);
  }

  close() {
    this.list.hidden = true;
    this.field.removeAttribute('aria-activedescendant');
  }

  /** @param {number} at */
  take(at) {
    const { word } = this.typed;
    const { text } = this.offers[at];
    const end = this.field.selectionStart;
    this.field.setRangeText(text, end - word.length, end, 'end');
    this.close();
    this.field.dispatchEvent(new Event('change'));
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the key was for the list */
  key(event) {
    if (!this.isOpen) return false;
    const count = this.offers.length;
    if (event.key === 'ArrowDown') this.chosen = (this.chosen + 1) % count;
    else if (event.key === 'ArrowUp') this.chosen = (this.chosen + count - 1) % count;
    else if (event.key === 'Tab' || (event.key === 'Enter' && !event.ctrlKey && !event.metaKey)) {
      this.take(this.chosen);
      return true;
    } else if (event.key === 'Escape') {
      this.close();
      return true;
    } else return false;
    this.show();
    return true;
  }
}
