/**
 * The panel of the selected task: what it is, where and when it ran, how it ranks among tasks of its name, what released it
 * and what it releases (buttons that go there), and its arguments.
 */

import { make, part } from './dom.js';
import { enclosed } from './enclosed.js';
import { grouped } from './ticks.js';
/** @import { Child } from './dom.js' */
/** @import { Guide } from './guide.js' */
/** @import { Neighbour, TaskInfo } from './selection.js' */
/** @import { Scene } from './timeline.js' */

export class TaskPanel {
  /** @param {Scene} scene @param {Guide} guide */
  constructor(scene, guide) {
    this.scene = scene;
    this.guide = guide;
    this.panel = part('panel-task');
    scene.selection.listeners.push(() => this.show());
    scene.state.on(['task'], () => this.show());
    this.show();
  }

  show() {
    const { info } = this.scene.selection;
    const { task } = this.scene.state.now;
    if (task === null) return this.panel.replaceChildren(make('p', { class: 'pale' }, 'No task is selected: click one, or walk through a row with the keys , and .'));
    if (!info) return this.panel.replaceChildren(make('p', { class: 'pale' }, this.scene.selection.isLoading ? 'Loading …' : `There is no task ${task}.`));
    this.panel.replaceChildren(make('div', { class: 'task' }, this.head(info), this.facts(info), this.links(info), argsTable(info.args),
      enclosed && make('p', { class: 'pale' }, 'Its arguments, and what released it, are not in this file; `tq view` of the trace shows them.')));
  }

  /** @param {TaskInfo} info */
  head(info) {
    return make('header', {}, make('h2', {}, info.name || '(unnamed)'),
      make('span', { class: 'pale' }, `task ${info.task}`),
      make('span', { class: 'grow' }),
      make('button', { type: 'button', onclick: () => this.guide.zoomToSelection() }, 'Zoom to it'),
      make('button', { type: 'button', onclick: () => this.selectSpan(info) }, 'Select its time'),
      make('button', { type: 'button', onclick: () => this.scene.state.set({ search: `^${escaped(info.name)}$` }) }, 'Find all of its name'));
  }

  /** @param {TaskInfo} info */
  selectSpan(info) {
    const spot = this.scene.selection.spotOf(info);
    if (spot) this.scene.state.set({ range: { from: spot.start, to: spot.finish }, tab: 'range' });
  }

  /** @param {TaskInfo} info */
  facts(info) {
    const { clock, hasRuns } = this.scene.trace;
    const exact = (/** @type {string | null} */ tick) => tick && clock.exact(BigInt(tick));
    const span = (/** @type {string | null} */ ticks) => ticks && clock.text(BigInt(ticks));
    const { rank } = info;
    const parent = info.parent;
    /** @type {[string, Child][]} */
    const facts = [
      ['Duration', span(info.duration) ?? 'never ended'],
      ['Self time', info.self_time === info.duration ? null : span(info.self_time)],
      ['Rank', !rank ? null : rank.of !== '1' ? `${grouped(rank.place)} of ${grouped(rank.of)} of its name by duration; median ${span(rank.median)}` : 'the only one of its name'],
      ['Start', exact(info.start)], ['Finish', exact(info.finish)],
      ['Kind', [info.kind, info.role === info.kind ? '' : info.role].filter(Boolean).join(', ')],
      ['Location', info.location], ['Run', hasRuns && info.run],
      ['Parent', parent && this.goButton(parent.name, parent.task)], ['Children', info.children === '0' ? null : grouped(info.children)],
    ];
    const rows = facts.filter(([, value]) => value).flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]);
    return make('dl', { class: 'facts' }, ...rows);
  }

  /** @param {TaskInfo} info */
  links(info) {
    if (!info.released_by.length && !info.releases.length) return null;
    return make('div', {},
      this.linkList('Released by  [', info.released_by, info.more_released_by, info),
      this.linkList('Releases  ]', info.releases, info.more_releases, info));
  }

  /** @param {string} title @param {Neighbour[]} tasks @param {string | undefined} more @param {TaskInfo} info */
  linkList(title, tasks, more, info) {
    if (!tasks.length) return null;
    const items = tasks.map((task) => make('li', {}, this.goButton(task.name, task.task),
      make('span', { class: 'pale' }, `${task.kind}${this.wait(task, info, title.startsWith('Released'))}${task.lane === info.lane ? '' : `, on ${this.scene.trace.placeOf(task.lane)}`}`)));
    return make('section', {}, make('h3', {}, title), make('ul', { class: 'links' }, ...items),
      more && Number(more) > 0 ? make('p', { class: 'pale' }, `and ${grouped(more)} more`) : null);
  }

  /** The time between two linked tasks. @param {Neighbour} other @param {TaskInfo} info @param {boolean} isBefore */
  wait(other, info, isBefore) {
    const finish = isBefore ? other.finish : info.finish;
    const start = isBefore ? info.start : other.start;
    if (finish === null || start === null) return '';
    const gap = BigInt(start) - BigInt(finish);
    return gap < 0n ? ', overlaps' : `, ${this.scene.trace.clock.text(gap)} ${isBefore ? 'before' : 'later'}`;
  }

  /** @param {string} name @param {string} task */
  goButton(name, task) {
    return make('button', { type: 'button', class: 'link', title: name, onclick: () => this.guide.select(BigInt(task)) }, name || '(unnamed)');
  }
}

/** @param {Record<string, unknown> | null} args */
function argsTable(args) {
  if (!args || !Object.keys(args).length) return null;
  const rows = Object.entries(args).map(([key, value]) =>
    make('tr', {}, make('th', { scope: 'row' }, key), make('td', {}, typeof value === 'string' ? value : JSON.stringify(value))));
  return make('div', {}, make('h3', {}, 'Arguments'), make('table', { class: 'args' }, make('tbody', {}, ...rows)));
}

/** A regular expression that matches just this text. @param {string} text */
function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
