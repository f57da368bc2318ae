/**
 * What the reader did, as one flat object that lives in the address after `#`: copying the address shares the view. Parts
 * of the page read it, change it with `set`, and hear of changes with `on`. The address is rewritten at most every quarter
 * of a second; an address that someone pastes is taken over.
 */

import { enclosed } from './enclosed.js';
import { parseTicks } from './ticks.js';
/** @import { Theme } from './palette.js' */
/** @import { Range } from './view.js' */

/** @typedef {'sort_index' | 'busiest' | 'name' | 'start' | 'path'} Order */
/** @typedef {'name' | 'kind' | 'location' | 'layer'} Colour what the colour of a task says */
/** @typedef {'' | 'task' | 'range' | 'sql'} Tab */
/**
 * @typedef {object} Shared
 * @property {Range | null} view what is visible
 * @property {bigint | null} task the selected task
 * @property {Range | null} range the selected range
 * @property {string} search a regular expression
 * @property {string[]} layers names of built-in layers
 * @property {string} layerSql a layer of one's own
 * @property {string} sql the text of the editor
 * @property {string} query the saved query that is shown for the range
 * @property {string} params of that query, as they stand in an address: `limit=5&region=main`
 * @property {number[]} pins lanes
 * @property {number[]} closed collapsed nodes
 * @property {number[]} open nodes that are expanded although the page would collapse them
 * @property {number[]} hidden lanes
 * @property {Order} order
 * @property {Colour} colour
 * @property {boolean} aligned whether all runs begin at one instant
 * @property {bigint[]} marks
 * @property {Tab} tab which panel is open
 * @property {'' | 'bottom' | 'right'} dock
 * @property {number} size of the panel, in pixels
 * @property {number} names width of the column of names, in pixels
 * @property {Theme} theme
 */

/** @type {Shared} */
const INITIAL = {
  view: null, task: null, range: null, search: '', layers: [], layerSql: '', sql: '', query: '', params: '', pins: [], closed: [], open: [],
  hidden: [], order: 'sort_index', colour: 'name', aligned: false, marks: [], tab: '', dock: '', size: 0, names: 0, theme: '',
};

/** @typedef {{read: (text: string) => any, write: (value: any) => string}} Codec */
/** @type {Codec} */
const asText = { read: (text) => text, write: (value) => value };
/** What needs a server is not taken from an address. @type {Codec} */
const asNothing = { read: () => false, write: () => '' };
/** @type {Codec} */
const asNone = { read: () => '', write: () => '' };
/** @type {Codec} */
const asNumber = { read: (text) => Number(text) || 0, write: (value) => (value ? String(value) : '') };
/** @type {Codec} */
const asNumbers = { read: (text) => text.split('.').map(Number).filter(Number.isInteger), write: (value) => value.join('.') };
/** @type {Codec} */
const asNames = { read: (text) => text.split('.').filter(Boolean), write: (value) => value.join('.') };
/** @type {Codec} */
const asTicks = { read: parseTicks, write: (value) => (value === null ? '' : String(value)) };
/** @type {Codec} */
const asMarks = {
  read: (text) => text.split('.').map(parseTicks).filter((tick) => tick !== null), write: (value) => value.join('.'),
};
/** @type {Codec} */
const asFlag = { read: (text) => text === '1', write: (value) => (value ? '1' : '') };
/** @type {Codec} */
const asRange = { read: parseRange, write: (value) => (value ? `${value.from}..${value.to}` : '') };

/** @param {...string} allowed @returns {Codec} */
function oneOf(...allowed) {
  return { read: (text) => (allowed.includes(text) ? text : allowed[0]), write: (value) => (value === allowed[0] ? '' : value) };
}

/** Panels that only ask a server. */
const ASKING_TABS = ['range', 'sql'];
/** @type {Record<keyof Shared, Codec>} */
const CODECS = {
  view: asRange, task: asTicks, range: asRange, search: asText, layers: asNames, layerSql: asText, sql: asText, query: asText, params: asText,
  pins: asNumbers, closed: asNumbers, open: asNumbers, hidden: asNumbers, order: oneOf('sort_index', 'busiest', 'name', 'start', 'path'),
  colour: oneOf('name', 'kind', 'location', 'layer'), aligned: enclosed ? asNothing : asFlag, marks: asMarks, tab: oneOf('', 'task', ...(enclosed ? [] : ASKING_TABS)), dock: oneOf('', 'bottom', 'right'), size: asNumber, names: asNumber,
  theme: enclosed ? asNone : oneOf('', 'light', 'dark'),
};
const KEYS = /** @type {(keyof Shared)[]} */ (Object.keys(CODECS));

/** @param {string} text @returns {Range | null} */
function parseRange(text) {
  const [from, to] = text.split('..').map(parseTicks);
  return from !== null && from !== undefined && to !== null && to !== undefined && from < to ? { from, to } : null;
}

/** @param {string} hash @returns {Shared} */
function decodeState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const state = { ...INITIAL };
  for (const key of KEYS) {
    const text = given.get(key);
    if (text) /** @type {any} */ (state)[key] = CODECS[key].read(text);
  }
  return state;
}

/** @param {Shared} state */
function encodeState(state) {
  const texts = KEYS.map((key) => [key, CODECS[key].write(state[key])]).filter(([, text]) => text !== '');
  return texts.length ? `#${new URLSearchParams(texts).toString()}` : '#';
}

export class State {
  constructor() {
    this.window = addressed();
    this.now = decodeState(this.window.location.hash);
    /** @type {{keys: (keyof Shared)[], tell: () => void}[]} */
    this.listeners = [];
    this.timer = 0;
    /** Whether the address that opened a report says what to show. */
    this.isShared = enclosed !== null && this.window.location.hash.includes('=');
    this.window.addEventListener('hashchange', () => {
      const { hash } = this.window.location;
      // A report has places of its own, which are no state.
      if (!enclosed || hash.includes('=')) this.set(decodeState(hash));
    });
  }

  /** @param {(keyof Shared)[]} keys @param {() => void} tell */
  on(keys, tell) {
    this.listeners.push({ keys, tell });
  }

  /** @param {Partial<Shared>} change */
  set(change) {
    if (enclosed && ASKING_TABS.includes(change.tab ?? '')) delete change.tab;
    const keys = KEYS.filter((key) => key in change && !isSame(key, this.now[key], change[key]));
    if (!keys.length) return;
    this.now = { ...this.now, ...change };
    for (const { keys: wanted, tell } of this.listeners) if (wanted.some((key) => keys.includes(key))) tell();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), 250);
  }

  write() {
    try {
      this.window.history.replaceState(null, '', encodeState(this.now));
    } catch {
      // A page within another one may have no address that it could change; it keeps its state as long as it is open.
    }
  }

  /** Adds a lane to a list, or takes it out. @param {'pins' | 'closed' | 'open' | 'hidden'} key @param {number} lane @param {boolean} isIn */
  put(key, lane, isIn) {
    const others = this.now[key].filter((other) => other !== lane);
    this.set({ [key]: isIn ? [...others, lane] : others });
  }
}

/** The window that has the address: for a page within a report that of the report, where it may be reached. @returns {Window} */
function addressed() {
  try {
    parent.location.hash;
    return parent;
  } catch {
    return window;
  }
}

/** @param {keyof Shared} key @param {any} a @param {any} b */
function isSame(key, a, b) {
  return a === b || CODECS[key].write(a) === CODECS[key].write(b);
}
