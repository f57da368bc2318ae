/**
 * Ways through the trace that several parts of the page use: select a task and bring it into sight, follow links, step from
 * hit to hit, go to a range, zoom to what is selected, set a mark.
 */

/** @import { Spot } from './overlays.js' */
/** @import { Neighbour } from './selection.js' */
/** @import { Scene, Timeline } from './timeline.js' */
/** @import { Range } from './view.js' */

export class Guide {
  /** @param {Scene} scene @param {Timeline} timeline */
  constructor(scene, timeline) {
    this.scene = scene;
    this.timeline = timeline;
    this.hit = -1;
    /** The task to bring into sight once it is known. @type {bigint | null} */
    this.awaited = null;
    this.isZoomAwaited = false;
    this.isRestoring = scene.state.now.task !== null;
    scene.selection.listeners.push(() => this.arrived());
  }

  /** Selects a task; one that is known to be in sight needs no `reveal`. @param {bigint} task @param {boolean} [reveal] */
  select(task, reveal = true) {
    this.awaited = reveal ? task : null;
    this.scene.state.set({ task, tab: 'task' });
    if (this.scene.selection.info?.task === String(task)) this.arrived();
  }

  arrived() {
    const { info, spot } = this.scene.selection;
    if (this.awaited !== null && spot && info?.task === String(this.awaited)) {
      this.awaited = null;
      this.reveal(spot);
    } else if (this.isRestoring && spot) this.timeline.revealLane(spot.lane, spot.row);
    this.isRestoring = false;
    if (this.isZoomAwaited && spot) this.zoomToSelection();
    this.timeline.request();
  }

  /** @param {Spot} spot */
  reveal(spot) {
    this.timeline.revealLane(spot.lane, spot.row);
    this.scene.view.reveal({ from: spot.start, to: spot.finish > spot.start ? spot.finish : spot.start + 1n });
  }

  /** Shows a range and selects it. @param {Range} range */
  goTo(range) {
    this.scene.state.set({ range });
    this.scene.view.frame(range);
  }

  /** Follows a link of the selected task: to the one that released it last, or to the first that it releases. @param {1 | -1} way */
  follow(way) {
    const { info } = this.scene.selection;
    const others = way < 0 ? info?.released_by : info?.releases;
    if (!others?.length) return;
    const key = (/** @type {Neighbour} */ task) => BigInt((way < 0 ? task.finish : task.start) ?? 0);
    const next = others.reduce((best, task) => ((way < 0 ? key(task) > key(best) : key(task) < key(best)) ? task : best));
    this.select(BigInt(next.task));
  }

  /** Selects the task beside or across from the selected one. @param {'beside' | 'across'} direction @param {1 | -1} way */
  walk(direction, way) {
    const hit = this.timeline[direction](this.scene.selection.spot, way);
    if (hit) this.select(hit.task);
  }

  /** Steps to the next hit of the search. @param {1 | -1} way */
  stepHit(way) {
    const { hits } = this.scene.layers;
    if (!hits?.starts.length) return;
    const count = hits.starts.length;
    this.hit = this.hit < 0 ? (way > 0 ? 0 : count - 1) : (this.hit + way + count) % count;
    const task = hits.tasks[this.hit];
    if (task !== null) this.select(task);
  }

  /** Zooms to the selected task, else to the selected range, else to the whole trace. */
  zoomToSelection() {
    const { view, state, selection } = this.scene;
    const { spot } = selection;
    this.isZoomAwaited = !spot && state.now.task !== null;
    if (this.isZoomAwaited) return;
    if (spot && state.now.tab !== 'range') {
      this.timeline.revealLane(spot.lane, spot.row);
      view.frame({ from: spot.start, to: spot.finish });
    } else if (state.now.range) view.show(state.now.range);
    else view.show(view.home);
  }

  /** Sets a mark, or takes one away that is within some pixels. @param {bigint} tick */
  mark(tick) {
    const { view, state } = this.scene;
    const near = (/** @type {bigint} */ mark) => Math.abs(view.x(mark) - view.x(tick)) < 6;
    const { marks } = state.now;
    state.set({ marks: marks.some(near) ? marks.filter((mark) => !near(mark)) : [...marks, tick] });
  }

  /** Lets go of what is selected, innermost first. */
  escape() {
    const { state } = this.scene;
    if (state.now.task !== null) state.set({ task: null, tab: state.now.tab === 'task' ? '' : state.now.tab });
    else if (state.now.range) state.set({ range: null });
    else if (state.now.search) state.set({ search: '' });
    else state.set({ tab: '' });
  }
}
