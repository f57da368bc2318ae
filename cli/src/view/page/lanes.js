/**
 * The tree of locations and where each is drawn: orders siblings, leaves out hidden and empty ones, stacks what is left
 * from top to bottom, and copies pinned lanes to the top. A collapsed node shows one row of its own, or thin strips of
 * what lies below it. Counters follow the rows of their lane.
 */

import { partOf, partsBetween } from './parts.js';
import { counterNodes, describeSeries } from './series.js';
import { percent } from './ticks.js';
/** @import { Spans } from './overlays.js' */
/** @import { Series } from './series.js' */
/** @import { Order, Shared } from './state.js' */
/** @import { Lane, Trace } from './trace.js' */

/**
 * @typedef {object} LaneNode
 * @property {number} id its lane, or beyond the lanes: the number of a run, or of a counter
 * @property {'lane' | 'run' | 'counter' | 'counters'} kind `counters` holds those that are not shown at once
 * @property {Lane | null} lane null for all but a lane
 * @property {string} title
 * @property {LaneNode[]} children
 * @property {bigint} busy with all below it
 * @property {bigint | null} start
 * @property {number} path ticks of the critical path, with all below it
 * @property {boolean} hasTasks itself or below
 * @property {Series | null} series of a counter
 * @property {LaneNode[]} counters that belong to it
 * @property {boolean} hasCounters itself or below
 */
/**
 * @typedef {object} LaneRow where a node is drawn
 * @property {LaneNode} node
 * @property {number} y in the list of rows
 * @property {number} top on the canvas
 * @property {number} height
 * @property {number} level of nesting
 * @property {boolean} isOpen
 * @property {boolean} hasMore whether it can be expanded
 * @property {boolean} isPinned
 * @property {number[]} strips lanes that are drawn as strips
 */
/** @typedef {{rows: LaneRow[], height: number, pinned: LaneRow[], pinnedHeight: number, rowOf: Map<number, LaneRow>}} Layout */

export const ROW_PITCH = 18;
const LANE_ROOM = 6;
const COUNTER_HEIGHT = 34;
const MOST_STRIPS = 24;
const MANY_LANES = 300;
const byWords = new Intl.Collator('en', { numeric: true });

/** @type {Record<Order, (a: LaneNode, b: LaneNode) => number>} */
const COMPARE = {
  sort_index: (a, b) => a.id - b.id,
  busiest: (a, b) => (b.busy > a.busy ? 1 : b.busy < a.busy ? -1 : a.id - b.id),
  name: (a, b) => byWords.compare(a.title, b.title),
  start: (a, b) => (a.start === b.start ? a.id - b.id : a.start === null ? 1 : b.start === null ? -1 : a.start < b.start ? -1 : 1),
  path: (a, b) => b.path - a.path || a.id - b.id,
};

export class LaneTree {
  /** @param {Trace} trace @param {Series[]} series */
  constructor(trace, series) {
    this.trace = trace;
    const counters = counterNodes(trace, series);
    const countersOf = (/** @type {number} */ id) => ({ series: null, counters: counters.get(id) ?? [], hasCounters: counters.has(id) });
    /** Counters below no other node. */
    this.loose = counters.get(-1) ?? [];
    this.isLarge = trace.lanes.filter((lane) => lane.rows > 0).length > MANY_LANES;
    /** @type {LaneNode[]} */
    this.nodes = trace.lanes.map((lane) => ({
      id: lane.number, kind: 'lane', lane, title: titleOf(lane, trace.lanes[lane.parent]), children: [], busy: lane.busy, start: lane.start, path: 0,
      hasTasks: lane.rows > 0, ...countersOf(lane.number),
    }));
    /** @type {LaneNode[]} */
    this.roots = [];
    for (const node of this.nodes) {
      const parent = this.nodes[node.lane?.parent ?? -1];
      (parent ? parent.children : this.roots).push(node);
    }
    if (trace.hasRuns) this.roots = this.underRuns(this.roots, countersOf);
    this.roots.forEach(sumUp);
    this.roots.forEach(firstStart);
  }

  /**
   * A node for each run.
   * @param {LaneNode[]} roots @param {(id: number) => Pick<LaneNode, 'series' | 'counters' | 'hasCounters'>} countersOf @returns {LaneNode[]}
   */
  underRuns(roots, countersOf) {
    return this.trace.info.runs.map(({ run }, at) => ({
      id: this.nodes.length + at, kind: 'run', lane: null, title: run, children: roots.filter((node) => node.lane?.run === run), busy: 0n, start: null, path: 0,
      hasTasks: false, ...countersOf(this.nodes.length + at),
    }));
  }

  /** Takes over the critical path, for the order by it. @param {Spans} spans */
  takePath({ lanes, starts, finishes }) {
    for (const node of this.nodes) node.path = 0;
    lanes.forEach((lane, at) => { if (this.nodes[lane]) this.nodes[lane].path += finishes[at] - starts[at]; });
    this.roots.forEach(sumPath);
  }

  /** Takes over first starts, when runs were aligned. @param {Lane[]} lanes */
  takeStarts(lanes) {
    for (const { number, start } of lanes) this.trace.lanes[number].start = start;
    for (const node of this.nodes) node.start = node.lane?.start ?? null;
    this.roots.forEach(firstStart);
  }

  get hasCounters() {
    return this.loose.length > 0 || this.roots.some((node) => node.hasCounters);
  }

  /** @param {LaneNode} node @param {number} level @param {Shared} state */
  isOpen(node, level, state) {
    if (state.closed.includes(node.id)) return false;
    if (state.open.includes(node.id)) return true;
    if (node.kind === 'counter' || node.kind === 'counters') return false;
    return node.lane?.role !== 'profiler' && !(this.isLarge && level === 0 && node.children.length > 0);
  }

  /** @param {Shared} state @returns {Layout} */
  layout(state) {
    /** @type {LaneRow[]} */
    const rows = [];
    let y = 0;
    const add = (/** @type {LaneNode} */ node, /** @type {number} */ level) => {
      const isOpen = this.isOpen(node, level, state);
      const row = rowAt(node, y, level, isOpen);
      rows.push(row);
      y += row.height;
      if (!isOpen) return;
      if (node.kind === 'counters') return strips(node.children, level + 1);
      if (node.kind === 'lane') strips(node.counters, level + 1);
      below(node.children, level + 1);
      if (node.kind === 'run') strips(node.counters, level + 1);
    };
    const strips = (/** @type {LaneNode[]} */ counters, /** @type {number} */ level) => {
      for (const node of counters) if (!state.hidden.includes(node.id)) add(node, level);
    };
    const below = (/** @type {LaneNode[]} */ nodes, /** @type {number} */ level) => {
      const shown = nodes.filter((node) => !state.hidden.includes(node.id) && isWorthShowing(node, nodes));
      shown.sort(COMPARE[state.order]).forEach((node) => add(node, level));
    };
    below([...this.roots], 0);
    strips(this.loose, 0);
    const { pinned, height } = this.pinned(state);
    return { rows, height: y, pinned, pinnedHeight: height, rowOf: this.placesOf([...rows, ...pinned]) };
  }

  /** @param {Shared} state */
  pinned(state) {
    let height = 0;
    const pinned = state.pins.flatMap((id) => this.nodes[id] ?? []).map((node) => {
      const row = { ...rowAt(node, height, 0, !state.closed.includes(node.id)), isPinned: true };
      height += row.height;
      return row;
    });
    return { pinned, height };
  }

  /** The row in which each lane is found: its own, or that of what it is collapsed into. @param {LaneRow[]} rows */
  placesOf(rows) {
    /** @type {Map<number, LaneRow>} */
    const places = new Map(rows.map((row) => [row.node.id, row]));
    for (const node of this.nodes) {
      let above = node.lane;
      while (above && !places.has(above.number)) above = this.trace.lanes[above.parent] ?? null;
      const place = above && places.get(above.number);
      if (place) places.set(node.id, place);
    }
    return places;
  }

  /** What is to be expanded for a lane to be seen: its parents. @param {number} lane @returns {number[]} */
  parentsOf(lane) {
    const parents = [];
    for (let above = this.trace.lanes[lane]?.parent ?? -1; above >= 0; above = this.trace.lanes[above].parent) parents.push(above);
    if (this.trace.hasRuns) parents.push(this.nodes.length + this.trace.info.runs.findIndex(({ run }) => run === this.trace.lanes[lane]?.run));
    return parents;
  }

  /** The share of the trace in which a lane was busy, as text; empty for groups. @param {LaneNode} node */
  busyShare(node) {
    if (!node.lane || node.lane.rows === 0) return null;
    return Number(node.lane.busy) / this.trace.lengthOf(node.lane.run);
  }

  /** A sentence about a node, for its tooltip. @param {LaneNode} node */
  describe(node) {
    if (node.series) return describeSeries(node.series, this.trace.placeOf(node.series.lane));
    if (node.kind === 'counters') return `Show or hide ${node.children.length} more`;
    const share = this.busyShare(node);
    const parts = [this.trace.placeOf(node.id) || node.title, node.lane?.name, node.lane?.kind];
    if (node.lane && share !== null) parts.push(`${node.lane.tasks} tasks, busy ${percent(share)}`);
    return [...new Set(parts.filter(Boolean))].join(' · ');
  }
}

/** A short title: the name for people, else the last part of the location. @param {Lane} lane @param {Lane | undefined} parent */
function titleOf(lane, parent) {
  if (lane.name) return lane.name;
  const above = parent ? parent.location : '';
  const isBelow = above && lane.location.startsWith(above) && /[/.:]/.test(lane.location[above.length] ?? '');
  return isBelow ? lane.location.slice(above.length + 1) : lane.location || '(no location)';
}

/** @param {LaneNode} node */
function sumUp(node) {
  for (const child of node.children) {
    sumUp(child);
    // A group is as busy as the busiest of what it holds: that is the share that one sees.
    if (child.busy > node.busy) node.busy = child.busy;
    node.hasTasks ||= child.hasTasks;
    node.hasCounters ||= child.hasCounters;
  }
}

/** @param {LaneNode} node @returns {bigint | null} of itself and of all below it */
function firstStart(node) {
  for (const child of node.children) {
    const start = firstStart(child);
    if (start !== null && (node.start === null || start < node.start)) node.start = start;
  }
  return node.start;
}

/** @param {LaneNode} node @returns {number} */
function sumPath(node) {
  // A run has no path but that of its lanes.
  const own = node.lane ? node.path : 0;
  return (node.path = node.children.reduce((sum, child) => sum + sumPath(child), own));
}

/** A lane that ran nothing is shown where it has counters, or where others of its kind beside it did run. @param {LaneNode} node @param {LaneNode[]} siblings */
function isWorthShowing(node, siblings) {
  return node.hasTasks || node.hasCounters || siblings.some((other) => other.lane && other.lane.rows > 0 && other.lane.kind === node.lane?.kind);
}

/** @param {LaneNode} node @param {number} y @param {number} level @param {boolean} isOpen @returns {LaneRow} */
function rowAt(node, y, level, isOpen) {
  const own = node.lane?.rows ?? 0;
  const hasMore = own > 1 || node.counters.length > 0 || node.children.some((child) => child.hasTasks || child.hasCounters);
  const strips = own === 0 && !isOpen ? lanesBelow(node).slice(0, MOST_STRIPS) : [];
  const height = node.series ? COUNTER_HEIGHT : (isOpen ? Math.max(own, 1) : 1) * ROW_PITCH + LANE_ROOM;
  return { node, y, height, level, isOpen, hasMore, isPinned: false, strips, top: y };
}

/** @param {LaneNode} node @returns {number[]} the lanes with tasks below a node */
function lanesBelow(node) {
  return node.children.flatMap((child) => [...(child.lane && child.lane.rows > 0 ? [child.id] : []), ...lanesBelow(child)]);
}

/** Says where rows are on the canvas after scrolling; pinned ones stay. @param {Layout} layout @param {number} scrolled */
export function scrollRows(layout, scrolled) {
  for (const row of layout.rows) row.top = row.y + layout.pinnedHeight - scrolled;
}

/** The rows that a canvas of so many pixels shows: pinned ones and those scrolled into sight. @param {Layout} layout @param {number} height */
export function rowsInSight(layout, height) {
  return layout.rows.filter((row) => row.top < height && row.top + row.height > layout.pinnedHeight);
}

/** The row below a pixel, and which lane and row of tasks of it. @param {Layout} layout @param {number} y */
export function placeAt(layout, y) {
  const rows = y < layout.pinnedHeight ? layout.pinned : layout.rows;
  const place = rows.find((row) => row.top <= y && y < row.top + row.height);
  if (!place) return null;
  if (place.strips.length) {
    const strip = Math.floor((y - place.top - 2) / (place.height - 4) * place.strips.length);
    return { place, lane: place.strips[Math.min(Math.max(strip, 0), place.strips.length - 1)], row: 0 };
  }
  const row = Math.min(Math.max(Math.floor((y - place.top - LANE_ROOM / 2) / ROW_PITCH), 0), Math.max((place.node.lane?.rows ?? 1) - 1, 0));
  return { place, lane: place.node.id, row: place.isOpen ? row : 0 };
}

/** Whether a node only holds others. @param {LaneNode} node */
export function isGroup(node) {
  return node.kind === 'run' || (node.lane?.rows === 0 && node.children.length > 0);
}

/** The lanes whose tasks a row draws. @param {LaneRow} row @returns {number[]} */
export function lanesDrawn(row) {
  return row.strips.length ? row.strips : row.node.lane && row.node.lane.rows > 0 ? [row.node.id] : [];
}

/**
 * The parts of lanes whose tasks a row draws between two heights of the canvas.
 * @param {LaneRow} row @param {number} top @param {number} bottom @returns {number[]}
 */
export function partsDrawn(row, top, bottom) {
  if (row.strips.length || !row.isOpen) return lanesDrawn(row).map((lane) => partOf(lane, 0));
  const rowAt = (/** @type {number} */ y) => Math.floor((y - row.top - LANE_ROOM / 2) / ROW_PITCH);
  return lanesDrawn(row).flatMap((lane) => {
    const last = (row.node.lane?.rows ?? 1) - 1;
    return partsBetween(lane, Math.min(Math.max(rowAt(top), 0), last), Math.min(Math.max(rowAt(bottom), 0), last));
  });
}

/** The top of the bars of a lane's row of tasks, and their height. @param {LaneRow} place @param {number} lane @param {number} row */
export function barPlace(place, lane, row) {
  const strip = place.strips.indexOf(lane);
  if (strip >= 0) {
    const height = (place.height - 4) / place.strips.length;
    return { y: place.top + 2 + strip * height, height: Math.max(height - (height > 3 ? 1 : 0), 1), isShown: row === 0 };
  }
  const isShown = place.node.id === lane && (place.isOpen || row === 0);
  return { y: place.top + LANE_ROOM / 2 + (isShown ? row : 0) * ROW_PITCH, height: ROW_PITCH - 1, isShown };
}
