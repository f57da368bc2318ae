/**
 * Runs side by side: with the switch on, the server moves the instants of each run so that all begin where the first does.
 * Whatever was asked before is of other instants then, so all of it is asked again.
 */

import { showError } from './dom.js';
import { loadLanes } from './trace.js';
import { alignRuns, Latest } from './wire.js';
/** @import { Minimap } from './minimap.js' */
/** @import { Scene, Timeline } from './timeline.js' */

const latest = new Latest();

/** @param {Scene} scene @param {Timeline} timeline @param {Minimap} minimap */
export async function realign({ state, trace, view, tree, tiles, counters, layers, selection }, timeline, minimap) {
  const { aligned } = state.now;
  alignRuns(aligned);
  try {
    const lanes = await latest.run(loadLanes);
    if (!lanes) return;
    trace.align(aligned);
    view.take(trace.bounds);
    view.show(state.now.view ?? view.home, true);
    tree.takeStarts(lanes);
    tiles.forget();
    counters.forget(trace.bounds);
    layers.reload();
    selection.load();
    timeline.relayout();
    await minimap.load();
    timeline.request();
  } catch (error) {
    showError(error);
  }
}
