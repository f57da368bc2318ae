/**
 * The tooltip beside the pointer: what the bar below it is, what was summed there, or the value of a counter.
 */

import { make, part } from './dom.js';
import { enclosed } from './enclosed.js';
import { valueText } from './series.js';
import { grouped, percent } from './ticks.js';
/** @import { SumHit, TaskHit } from './bars.js' */
/** @import { InstantHit } from './instants.js' */
/** @import { CounterHit } from './steps.js' */
/** @import { Hit } from './timeline.js' */
/** @import { Trace } from './trace.js' */

const AWAY = 14;

/** @param {Hit | null} hit @param {Trace} trace @param {number} x @param {number} y */
export function showTip(hit, trace, x, y) {
  const tip = part('tip');
  tip.hidden = !hit;
  if (!hit) return;
  const lines = linesOf(hit, trace);
  const place = trace.placeOf(hit.kind === 'counter' ? hit.series.lane : hit.lane) || (hit.kind === 'counter' && trace.hasRuns && hit.series.run);
  tip.replaceChildren(...lines, place ? make('span', { class: 'pale' }, place) : '');
  const { offsetWidth, offsetHeight } = tip;
  const left = x + AWAY + offsetWidth > innerWidth ? x - AWAY - offsetWidth : x + AWAY;
  const top = y + AWAY + offsetHeight > innerHeight ? y - AWAY - offsetHeight : y + AWAY;
  tip.style.transform = `translate(${Math.max(left, 2)}px, ${Math.max(top, 2)}px)`;
}

/** @param {Hit} hit @param {Trace} trace */
function linesOf(hit, trace) {
  switch (hit.kind) {
    case 'task': return taskLines(hit, trace);
    case 'sum': return sumLines(hit, trace);
    case 'counter': return counterLines(hit, trace);
    default: return instantLines(hit, trace);
  }
}

/** @param {InstantHit} hit @param {Trace} trace */
function instantLines({ label, at }, trace) {
  return [make('strong', {}, label || '(unnamed)'), make('span', {}, `at ${trace.clock.exact(at)}`)];
}

/** @param {TaskHit} hit @param {Trace} trace */
function taskLines(hit, trace) {
  return [
    make('strong', {}, trace.nameOf(hit.name)),
    make('span', {}, `${trace.clock.text(hit.finish - hit.start)}, from ${trace.clock.exact(hit.start)}`),
  ];
}

/** @param {SumHit} hit @param {Trace} trace */
function sumLines(hit, trace) {
  const tasks = hit.count === 1 ? '1 short task' : `${grouped(hit.count)} short tasks`;
  return [
    make('strong', {}, `${tasks}, busy ${percent(Math.min(hit.busy, 1))}`),
    make('span', {}, `most of it ${trace.nameOf(hit.name)}`),
    make('span', { class: 'pale' }, enclosed ? 'summed up: zoom in, or use `tq view`, to tell them apart' : 'summed up: zoom in to tell them apart'),
  ];
}

/** @param {CounterHit} hit @param {Trace} trace */
function counterLines({ series, value, least, most, at }, trace) {
  return [
    make('strong', {}, `${series.name}: ${valueText(value, series.unit)}`),
    least < most ? make('span', {}, `${valueText(least, '')} to ${valueText(most, series.unit)} within this pixel`) : '',
    make('span', {}, `at ${trace.clock.exact(at)}`),
  ];
}
