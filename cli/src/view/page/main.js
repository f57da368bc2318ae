/**
 * The page of `tq view`: loads the trace, makes the parts and connects them.
 */

import { realign } from './aligned.js';
import { Colouring } from './colouring.js';
import { Counters } from './counters.js';
import { Dock } from './dock.js';
import { part, showError } from './dom.js';
import { enclosed } from './enclosed.js';
import { Guide } from './guide.js';
import { Hands } from './hands.js';
import { Head, showHelp } from './head.js';
import { LaneTree } from './lanes.js';
import { Layers } from './layers.js';
import { Legend } from './legend.js';
import { Minimap } from './minimap.js';
import { Names } from './names.js';
import { applyTheme, onSystemTheme } from './palette.js';
import { TaskPanel } from './panel.js';
import { Pyramid } from './pyramid.js';
import { Selection } from './selection.js';
import { loadSeries } from './series.js';
import { SqlPanel } from './sql.js';
import { State } from './state.js';
import { SummaryPanel } from './summary.js';
import { Tiles } from './tiles.js';
import { Timeline } from './timeline.js';
import { loadTrace } from './trace.js';
import { View } from './view.js';
import { alignRuns, fetchJson } from './wire.js';
/** @import { Series } from './series.js' */
/** @import { Scene } from './timeline.js' */
/** @import { Trace } from './trace.js' */

/** @param {State} state @param {Trace} trace @param {Series[]} series */
function build(state, trace, series) {
  /** @type {Timeline | undefined} */
  let timeline;
  /** @type {Head | undefined} */
  let head;
  const redraw = () => timeline?.request();
  const view = new View(trace.bounds, () => { state.set({ view: isHome(view) ? null : view.range }); redraw(); });
  const tree = new LaneTree(trace, series);
  const layers = new Layers(state, trace, redraw);
  const scene = {
    state, trace, view, tree, tiles: new (enclosed ? Pyramid : Tiles)(trace, redraw, showError), counters: new Counters(trace.bounds, redraw, showError),
    layers, colouring: new Colouring(state, trace, layers),
    selection: new Selection(state, trace), names: new Names(state, tree),
  };
  const minimap = new Minimap(scene);
  /** @type {Legend | undefined} */
  let legend;
  timeline = new Timeline(scene, () => { minimap.draw(/** @type {Timeline} */ (timeline).colours); head?.showStatus(); legend?.show(); });
  legend = new Legend(scene, timeline);
  // For the console and for tests: what is drawn where.
  Object.assign(timeline.canvas, { timeline });
  const guide = new Guide(scene, timeline);
  head = new Head(scene, timeline, guide);
  new Hands(scene, timeline, guide, showHelp);
  new TaskPanel(scene, guide);
  if (!enclosed) buildAsking(scene, guide);
  new Dock(state, timeline);
  onSystemTheme(() => timeline?.retheme());
  state.on(['aligned'], () => realign(scene, /** @type {Timeline} */ (timeline), minimap));
  state.on(['view'], () => followAddress(state, view));
  followAddress(state, view, true);
  scene.selection.load();
  if (state.isShared) showFrame();
  minimap.load().then(redraw).catch(showError);
}

/** An address that someone sent is about the time line: the page around it shows that. */
function showFrame() {
  try {
    frameElement?.scrollIntoView({ block: 'center' });
  } catch { /* Another page may hold the frame. */ }
}

/** The panels that only ask the server. @param {Scene} scene @param {Guide} guide */
function buildAsking(scene, guide) {
  const summary = new SummaryPanel(scene, guide);
  const sql = new SqlPanel(scene, guide);
  fetchJson('queries').then((queries) => summary.offer(queries)).catch(showError);
  fetchJson('words').then((words) => { sql.completion.words = words; }).catch(showError);
}

/** Shows the range that the address names, where it is not shown already. @param {State} state @param {View} view @param {boolean} [atOnce] */
function followAddress(state, view, atOnce = false) {
  const wanted = state.now.view ?? view.home;
  const { from, to } = view.range;
  if (wanted.from !== from || wanted.to !== to) view.show(wanted, atOnce);
}

/** @param {View} view */
function isHome(view) {
  const { from, to } = view.range;
  return from === view.home.from && to === view.home.to;
}

/** Starts the page. */
function start() {
  document.documentElement.toggleAttribute('data-enclosed', enclosed !== null);
  const state = new State();
  applyTheme(state.now.theme);
  alignRuns(state.now.aligned);
  // Without its counters the trace is still worth seeing.
  const counters = loadSeries().catch((error) => { showError(error); return []; });
  Promise.all([loadTrace(state.now.aligned), counters]).then(([trace, series]) => build(state, trace, series)).catch((error) => {
    part('notice').hidden = true;
    showError(error);
  });
}

start();
