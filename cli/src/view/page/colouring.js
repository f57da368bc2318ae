/**
 * What the colour of a task says: its name, its kind, its location, or what a layer of the reader's own says of it (numbers on
 * a scale, words by hue); the layer of differences between two runs brings its own colours. Everything is an index into the
 * hues of the palette. Of summed tasks only the name is known.
 */

import { FACTOR_LAYER, OWN_LAYER } from './layers.js';
import { factorIndex, GREY, scaleIndex } from './palette.js';
/** @import { Layers } from './layers.js' */
/** @import { Spans } from './overlays.js' */
/** @import { Colour, State } from './state.js' */
/** @import { PartTile } from './tiles.js' */
/** @import { Trace } from './trace.js' */

/** Factors beyond 4 have the colour of 4, so that one of them does not pale all others. */
const MOST_DOUBLINGS = 2;

export class Colouring {
  /** @param {State} state @param {Trace} trace @param {Layers} layers */
  constructor(state, trace, layers) {
    this.state = state;
    this.trace = trace;
    this.layers = layers;
    /** Those with most tasks first. */
    this.kinds = ranked(trace.kinds, trace.tasksOfNames);
    this.locations = ranked(trace.lanes.filter((lane) => lane.rows > 0).map((lane) => lane.location), []);
    this.kindHues = Uint8Array.from(trace.kinds, hueOfWord(this.kinds));
    this.locationHues = Uint8Array.from(trace.lanes.map((lane) => lane.location), hueOfWord(this.locations));
    /** The words of the layer, those of most tasks first. @type {string[]} */
    this.words = [];
    /** @type {Map<bigint, number>} */
    this.taskHues = new Map();
    /** Hues of tiles, while they mean the same. @type {WeakMap<PartTile, Uint8Array>} */
    this.painted = new WeakMap();
    /** What gives the colours. @type {Colour | typeof FACTOR_LAYER} */
    this.by = state.now.colour;
    /** How many times slower or faster the ends of the scale of factors are. */
    this.furthest = 1;
    this.isClipped = false;
    state.on(['colour', 'layers'], () => this.takeLayer());
    layers.listeners.push(() => this.takeLayer());
  }

  /** The layer that gives them. */
  get spans() {
    const { by } = this;
    return by === FACTOR_LAYER ? this.layers.loaded.get(FACTOR_LAYER) : by === 'layer' ? this.layers.loaded.get(OWN_LAYER) : undefined;
  }

  /** Whether the colours show a layer, so that it is not drawn as well. @param {string} layer */
  shows(layer) {
    return this.taskHues.size > 0 && this.spans === this.layers.loaded.get(layer);
  }

  takeLayer() {
    this.by = this.layers.shown.some(({ name }) => name === FACTOR_LAYER) ? FACTOR_LAYER : this.state.now.colour;
    const { spans } = this;
    this.painted = new WeakMap();
    this.taskHues = new Map();
    this.words = [];
    if (spans) {
      const rows = spans.tasks.flatMap((task, at) => (task === null ? [] : [at]));
      if (!spans.scale) this.words = ranked(rows.map((at) => spans.labels[at]), []).filter(Boolean);
      const hueOf = this.by === FACTOR_LAYER ? this.hueOfFactor(spans) : this.hueOfRow(spans);
      this.taskHues = new Map(rows.map((at) => [/** @type {bigint} */ (spans.tasks[at]), hueOf(at)]));
    }
    this.layers.changed();
  }

  /** @param {Spans} spans @returns {(at: number) => number} */
  hueOfRow({ scale, values, labels }) {
    const hueOf = hueOfWord(this.words);
    return (at) => {
      const value = values[at];
      if (scale) return value === null || !Number.isFinite(value) ? GREY : scaleIndex(value, scale);
      return this.words.length ? hueOf(labels[at]) : 0;
    };
  }

  /** @param {Spans} spans @returns {(at: number) => number} */
  hueOfFactor({ scale, values }) {
    const doublings = (/** @type {number} */ factor) => Math.max(Math.min(Math.log2(Math.max(factor, 0)), MOST_DOUBLINGS), -MOST_DOUBLINGS);
    const reach = Math.max(-doublings(scale?.least ?? 1), doublings(scale?.most ?? 1));
    this.furthest = 2 ** reach;
    this.isClipped = reach === MOST_DOUBLINGS;
    return (at) => {
      const value = values[at];
      return value === null || !Number.isFinite(value) ? GREY : factorIndex(reach > 0 ? doublings(value) / reach : 0);
    };
  }

  /** @param {number} lane @param {number} name @param {bigint | null} task null where tasks are summed up */
  hueOf(lane, name, task) {
    const { by } = this;
    if (by === 'kind') return this.kindHues[name] ?? GREY;
    if (by === 'location') return this.locationHues[lane] ?? GREY;
    if (by !== 'name') return (task === null ? null : this.taskHues.get(task)) ?? GREY;
    return this.trace.hueOf(name);
  }

  /** The hues of the tasks that a tile has of a part of a lane. @param {PartTile} part @param {number} lane */
  huesOf(part, lane) {
    if (this.by === 'name') return part.hues;
    let hues = this.painted.get(part);
    if (!hues) this.painted.set(part, (hues = part.hues.map((_, at) => this.hueOf(lane, part.names[at], part.tasks[at]))));
    return hues;
  }
}

/** Different words, those with most weight first; without weights each counts one. @param {string[]} words @param {number[]} weights */
function ranked(words, weights) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  words.forEach((word, at) => sums.set(word, (sums.get(word) ?? 0) + (weights[at] ?? 1)));
  return [...sums].sort(([, a], [, b]) => b - a).map(([word]) => word);
}

/** Gives the first words a hue each. @param {string[]} words @returns {(word: string) => number} */
function hueOfWord(words) {
  const hues = new Map(words.slice(0, GREY).map((word, at) => [word, at]));
  return (word) => hues.get(word) ?? GREY;
}
