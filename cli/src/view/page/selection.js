/**
 * The selected task: fetches what the server knows of it when the state names another one, and tells who wants to know.
 * Spots turn what the server says of a task into instants.
 */

import { address, fetchJson, Latest } from './wire.js';
import { showError } from './dom.js';
import { enclosed } from './enclosed.js';
import { WHOLE_LANE } from './overlays.js';
import { singleTask } from './singles.js';
/** @import { Spot } from './overlays.js' */
/** @import { State } from './state.js' */
/** @import { Trace } from './trace.js' */

/** @typedef {{task: string, name: string, kind: string, start: string, finish: string | null, lane: number, row: number | null}} Neighbour */
/**
 * @typedef {object} TaskInfo
 * @property {string} task
 * @property {string} name
 * @property {string} kind
 * @property {string | null} role
 * @property {string} run
 * @property {string} location
 * @property {number} lane
 * @property {number | null} row null where the server does not tell
 * @property {string | null} start
 * @property {string | null} finish
 * @property {string | null} duration
 * @property {string | null} self_time
 * @property {Record<string, unknown> | null} args
 * @property {{place: string, of: string, median: string} | null} rank
 * @property {{task: string, name: string} | null} parent
 * @property {string} children
 * @property {Neighbour[]} released_by
 * @property {Neighbour[]} releases
 * @property {string} [more_released_by]
 * @property {string} [more_releases]
 */

export class Selection {
  /** @param {State} state @param {Trace} trace */
  constructor(state, trace) {
    this.state = state;
    this.trace = trace;
    /** @type {TaskInfo | null} */
    this.info = null;
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.latest = new Latest();
    state.on(['task'], () => this.load());
  }

  async load() {
    const { task } = this.state.now;
    if (task === null) {
      this.latest.abort();
      return this.tell(null);
    }
    try {
      const info = await this.latest.run((signal) => (enclosed ? singleTask(task, this.trace) : fetchJson(address('task', { task }), { signal })));
      if (info) this.tell(info);
    } catch (error) {
      this.tell(null);
      showError(error);
    }
  }

  get isLoading() {
    return this.latest.running !== null;
  }

  /** @param {TaskInfo | null} info */
  tell(info) {
    this.info = info;
    this.listeners.forEach((tell) => tell());
  }

  /** Where the selected task lies; null until it is known. @returns {Spot | null} */
  get spot() {
    const { info } = this;
    return info && info.task === String(this.state.now.task) ? this.spotOf(info) : null;
  }

  /** Where a task lies; a task that never ended reaches to the end of the trace. @param {TaskInfo | Neighbour} task */
  spotOf(task) {
    if (task.start === null) return null;
    const row = task.row ?? (this.trace.lanes[task.lane]?.rows > 1 ? WHOLE_LANE : 0);
    return {
      lane: task.lane, row, start: BigInt(task.start), finish: task.finish === null ? this.trace.bounds.to : BigInt(task.finish),
    };
  }
}
