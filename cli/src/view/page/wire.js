/**
 * What comes over the wire. Decodes the binary "columns" of the server into typed arrays without copying them, asks for
 * them and for JSON with relative addresses, turns every failure into a WireError that the page can show, and holds a
 * `Latest` for each kind of request: a new one abandons the one that is still on its way.
 */

import { enclosed, unpacked } from './enclosed.js';

/** @typedef {bigint | number | string | null} Cell */
/** @typedef {BigInt64Array | Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array} Numbers */
/** @typedef {{name: string, type: string, offset: number, nulls?: number, bytes?: number, scale?: number, is?: string}} ColumnHead */
/** @typedef {{tables: {name: string, rows: number, columns: ColumnHead[]}[], [extra: string]: any}} Header */

const NUMBER_ARRAYS = {
  i64: BigInt64Array, f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array,
};
const utf8 = new TextDecoder();

/** A failure of a request, with what the server says of it. */
export class WireError extends Error {
  /** @param {number} status @param {{message?: string, hint?: string, line?: number, column?: number}} said */
  constructor(status, said) {
    super(said.message ?? `the server answered with status ${status}`);
    this.status = status;
    this.hint = said.hint;
    this.line = said.line;
    this.column = said.column;
  }
}

/** One column of a table: typed numbers, or texts that are decoded when they are read. */
export class Column {
  /** @param {ColumnHead} head @param {number} rows @param {ArrayBuffer} buffer @param {number} body */
  constructor(head, rows, buffer, body) {
    this.name = head.name;
    this.type = head.type;
    this.is = head.is ?? '';
    this.nulls = head.nulls === undefined ? null : new Uint8Array(buffer, body + head.nulls, rows);
    if (head.type === 'text') {
      /** @type {Numbers} */
      this.values = new Uint32Array(buffer, body + head.offset, rows + 1);
      this.texts = new Uint8Array(buffer, body + (head.bytes ?? 0), this.values[rows]);
    } else {
      const make = NUMBER_ARRAYS[/** @type {keyof typeof NUMBER_ARRAYS} */ (head.type)];
      if (!make) throw new Error(`the page does not know the column type ${head.type}`);
      const values = new make(buffer, body + head.offset, rows);
      const { scale } = head;
      this.values = scale ? Float32Array.from(/** @type {Uint16Array} */ (values), (value) => value / scale) : values;
      this.texts = null;
    }
  }

  /** @param {number} row @returns {Cell} */
  at(row) {
    if (this.nulls?.[row]) return null;
    if (!this.texts) return this.values[row];
    return utf8.decode(this.texts.subarray(Number(this.values[row]), Number(this.values[row + 1])));
  }
}

/** A table of an answer. */
export class Table {
  /** @param {string} name @param {number} rows @param {Column[]} columns */
  constructor(name, rows, columns) {
    this.name = name;
    this.rows = rows;
    this.columns = columns;
  }

  /** @param {string} name @returns {Column} */
  column(name) {
    const found = this.columns.find((column) => column.name === name);
    if (!found) throw new Error(`the answer has no column ${this.name}.${name}`);
    return found;
  }

  /** The values of a column of integers or floats. @param {string} name @returns {ArrayLike<number>} */
  numbers(name) {
    return /** @type {ArrayLike<number>} */ (/** @type {unknown} */ (this.column(name).values));
  }

  /** The values of a column of 64-bit integers. @param {string} name @returns {BigInt64Array} */
  bigints(name) {
    return /** @type {BigInt64Array} */ (this.column(name).values);
  }
}

/** An answer: its tables and the extras of its header. */
export class Answer {
  /** @param {Header} header @param {Map<string, Table>} tables */
  constructor(header, tables) {
    this.header = header;
    this.tables = tables;
  }

  /** @param {string} name @returns {Table} */
  table(name) {
    const found = this.tables.get(name);
    if (!found) throw new Error(`the answer has no table ${name}`);
    return found;
  }
}

/** @param {ArrayBuffer} buffer @returns {Answer} */
export function decodeColumns(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {Header} */
  const header = JSON.parse(utf8.decode(new Uint8Array(buffer, 4, length)));
  const tables = header.tables.map((head) => {
    const columns = head.columns.map((column) => new Column(column, head.rows, buffer, 4 + length));
    return new Table(head.name, head.rows, columns);
  });
  return new Answer(header, new Map(tables.map((table) => [table.name, table])));
}

/** What is answered in the time of runs that begin together, where the reader wants that. */
const MOVED = ['lanes', 'busy', 'tile', 'counter', 'layer', 'search', 'task'];
let isAligned = false;

/** @param {boolean} wanted whether addresses ask for runs that begin together */
export function alignRuns(wanted) {
  isAligned = wanted;
}

/** @param {string} path @param {Record<string, string | number | bigint | undefined>} [query] */
export function address(path, query = {}) {
  const all = isAligned && MOVED.includes(path) ? { ...query, aligned: 1 } : query;
  const text = Object.entries(all).filter(([, value]) => value !== undefined && value !== '')
    .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&');
  return text ? `${path}?${text}` : path;
}

/** @param {string} url @param {{signal?: AbortSignal, body?: string}} [options] */
async function request(url, options = {}) {
  const { signal, body } = options;
  if (enclosed) return enclosedAnswer(url, body);
  const answer = await fetch(url, body === undefined ? { signal } : { signal, method: 'POST', body }).catch((error) => {
    if (isAbort(error)) throw error;
    throw new WireError(0, { message: 'The server does not answer.', hint: 'Is `tq view` still running? Start it again and reload.' });
  });
  if (!answer.ok) throw new WireError(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

/** What a page without a server has in itself. @param {string} url @param {string} [body] */
function enclosedAnswer(url, body) {
  const packed = body === undefined && enclosed?.answers[url];
  if (!packed) throw new WireError(404, { message: 'This page has no server, and what it was asked for is not in it.', hint: '`tq view` of the trace answers.' });
  return unpacked(packed);
}

/** Columns that stand in the page itself. @param {string} text @returns {Promise<Answer>} */
export async function unpackColumns(text) {
  return decodeColumns(await unpacked(text).arrayBuffer());
}

/** @param {string} url @param {{signal?: AbortSignal, body?: string}} [options] @returns {Promise<Answer>} */
export async function fetchColumns(url, options) {
  return decodeColumns(await (await request(url, options)).arrayBuffer());
}

/** @param {string} url @param {{signal?: AbortSignal}} [options] @returns {Promise<any>} */
export async function fetchJson(url, options) {
  return (await request(url, options)).json();
}

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Keeps one request of a kind in flight: the next one aborts the one before. */
export class Latest {
  constructor() {
    /** @type {AbortController | null} */
    this.running = null;
  }

  abort() {
    this.running?.abort();
    this.running = null;
  }

  /**
   * Runs `ask`; resolves to null where a later request took its place.
   * @template T @param {(signal: AbortSignal) => Promise<T>} ask @returns {Promise<T | null>}
   */
  async run(ask) {
    this.abort();
    const mine = new AbortController();
    this.running = mine;
    try {
      const answer = await ask(mine.signal);
      return this.running === mine ? answer : null;
    } catch (error) {
      if (isAbort(error) || this.running !== mine) return null;
      throw error;
    } finally {
      if (this.running === mine) this.running = null;
    }
  }
}
