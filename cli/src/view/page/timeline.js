/**
 * The timeline itself: sizes the canvases, runs one animation frame when something changed and none otherwise, asks the
 * tiles for what is in sight and has everything drawn in order: bars, layers, hits, selection, arrows, ruler, names.
 */

import { drawPart, hitLane, LABEL_FONT, tasksShown } from './bars.js';
import { byId, fitCanvas, part } from './dom.js';
import { drawInstants, hitInstant } from './instants.js';
import { isGroup, lanesDrawn, partsDrawn, placeAt, ROW_PITCH, rowsInSight, scrollRows } from './lanes.js';
import { PATH_LAYER } from './layers.js';
import { drawArrow, drawHits, drawMarks, drawOutline, drawPath, drawRange, drawTint } from './overlays.js';
import { applyTheme, coloursOf } from './palette.js';
import { laneOf, partOf } from './parts.js';
import { drawRuler, eachTick, RULER_HEIGHT, rulerScale } from './ruler.js';
import { drawCounter, drawDot, hitCounter } from './steps.js';
import { Strips } from './strips.js';
import { piecesOf, segmentsOf } from './tiles.js';
import { tintOf } from './tints.js';
/** @import { Brush, SumHit, TaskHit } from './bars.js' */
/** @import { Colouring } from './colouring.js' */
/** @import { Counters } from './counters.js' */
/** @import { InstantHit } from './instants.js' */
/** @import { LaneRow, LaneTree } from './lanes.js' */
/** @import { Layer, Layers } from './layers.js' */
/** @import { Names } from './names.js' */
/** @import { Spot } from './overlays.js' */
/** @import { Selection } from './selection.js' */
/** @import { Series } from './series.js' */
/** @import { State } from './state.js' */
/** @import { CounterHit } from './steps.js' */
/** @import { Tile, Tiles } from './tiles.js' */
/** @import { Trace } from './trace.js' */
/** @import { View } from './view.js' */

/**
 * @typedef {object} Scene what the timeline shows
 * @property {State} state
 * @property {Trace} trace
 * @property {View} view
 * @property {LaneTree} tree
 * @property {Tiles} tiles
 * @property {Counters} counters
 * @property {Layers} layers
 * @property {Colouring} colouring
 * @property {Selection} selection
 * @property {Names} names
 */

/** @typedef {TaskHit | SumHit | CounterHit | InstantHit} Hit */

const DIMMED = 0.28;
const LEAST_NAMES = 90;

export class Timeline {
  /** @param {Scene} scene @param {() => void} drawn called after each frame */
  constructor(scene, drawn) {
    this.scene = scene;
    this.drawn = drawn;
    this.canvas = byId('lanes', HTMLCanvasElement);
    this.rulerCanvas = byId('ruler', HTMLCanvasElement);
    this.scroller = part('scroller');
    this.layout = scene.tree.layout(scene.state.now);
    /** @type {Tile[]} */
    this.ranked = [];
    this.height = 100;
    this.frame = 0;
    this.last = 0;
    this.hasSums = false;
    this.strips = new Strips();
    /** @type {Hit | null} */
    this.hovered = null;
    this.colours = coloursOf(scene.state.now.theme);
    const { state } = scene;
    state.on(['pins', 'closed', 'open', 'hidden', 'order'], () => this.relayout());
    state.on(['theme'], () => this.retheme());
    state.on(['range', 'marks'], () => this.request());
    this.scroller.addEventListener('scroll', () => this.request());
    new ResizeObserver(() => this.request()).observe(this.scroller);
    addEventListener('resize', () => this.request());
    scene.layers.listeners.push((name) => { if (name === PATH_LAYER) this.takePath(); });
    this.relayout();
    this.retheme();
  }

  /** Orders the lanes by the critical path once it is there. */
  takePath() {
    const path = this.scene.layers.loaded.get(PATH_LAYER);
    if (path) this.scene.tree.takePath(path);
    if (this.scene.state.now.order === 'path') this.relayout();
  }

  retheme() {
    applyTheme(this.scene.state.now.theme);
    this.colours = coloursOf(this.scene.state.now.theme);
    this.request();
  }

  relayout() {
    this.layout = this.scene.tree.layout(this.scene.state.now);
    part('spacer').style.height = `${this.layout.height + this.layout.pinnedHeight}px`;
    this.request();
  }

  /** Takes over the sizes that the style sheet gives. */
  measure() {
    const names = Math.max(this.scene.state.now.names || 240, LEAST_NAMES);
    part('timeline').style.setProperty('--names', `${names}px`);
    this.scene.view.width = Math.max(this.scroller.clientWidth - names, 50);
    this.height = Math.max(this.scroller.clientHeight, 20);
    part('sticky').style.height = `${this.height}px`;
  }

  /** Asks for one frame. */
  request() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    this.frame = 0;
    const { view, tiles, names } = this.scene;
    this.measure();
    const isMoving = view.step(this.last ? Math.min(now - this.last, 50) : 16);
    this.last = isMoving ? now : 0;
    scrollRows(this.layout, this.scroller.scrollTop);
    const inSight = rowsInSight(this.layout, this.height);
    this.wantTiles(inSight);
    this.ranked = tiles.ranked(view.now.span / view.width);
    this.drawLanes(inSight);
    this.drawRuler();
    names.show(this.layout, this.scroller.scrollTop, this.height);
    if (isMoving) this.request();
    this.drawn();
  }

  /** Asks for the rows in sight and for those one screen above and below, and for the counters in sight. @param {LaneRow[]} inSight */
  wantTiles(inSight) {
    const { view, tiles, counters } = this.scene;
    const near = this.layout.rows.filter((row) => row.top < 2 * this.height && row.top + row.height > -this.height);
    const around = near.flatMap((row) => partsDrawn(row, -this.height, 2 * this.height));
    tiles.want(view.range, view.width, [...this.layout.pinned, ...inSight].flatMap((row) => this.partsOf(row)), around);
    counters.want(view.range, view.width, inSight.flatMap(({ node }) => node.series?.number ?? []));
  }

  /** The parts of lanes that are in sight of a row. @param {LaneRow} row */
  partsOf(row) {
    return partsDrawn(row, 0, this.height);
  }

  /** @param {CanvasRenderingContext2D} context @returns {Brush} */
  brush(context) {
    const { view, trace, colouring, layers } = this.scene;
    context.font = LABEL_FONT;
    return { context, view, trace, colours: this.colours, colouring, labels: layers.labels, ratio: devicePixelRatio || 1, strips: this.strips };
  }

  /** @param {LaneRow[]} inSight */
  drawLanes(inSight) {
    const { view, layers, state } = this.scene;
    const brush = this.brush(fitCanvas(this.canvas, view.width, this.height));
    const { context, colours } = brush;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, view.width, this.height);
    this.drawGrid(brush);
    this.hasSums = false;
    this.drawRows(brush, inSight);
    if (this.layout.pinned.length) {
      context.fillStyle = colours.paper;
      context.fillRect(0, 0, view.width, this.layout.pinnedHeight);
      this.drawRows(brush, this.layout.pinned);
      context.fillStyle = colours.pale;
      context.fillRect(0, this.layout.pinnedHeight - 1, view.width, 1);
    }
    for (const layer of layers.shown) this.drawLayer(brush, layer);
    if (layers.hits) drawHits(brush, this.layout, layers.hits);
    if (state.now.range) drawRange(brush, state.now.range, this.height);
    this.drawSelection(brush);
    drawMarks(brush, state.now.marks, this.height);
  }

  /** @param {Brush} brush @param {Layer} layer */
  drawLayer(brush, { name, spans }) {
    const { colouring, trace } = this.scene;
    const { accent, alert } = this.colours;
    if (colouring.shows(name)) return;
    if (name.endsWith('-path')) drawPath(brush, this.layout, spans, name === 'executed-path' ? accent : alert);
    else if (spans.areInstants) drawInstants(brush, this.layout, spans, accent);
    else drawTint(brush, this.layout, spans, tintOf(name, spans, this.colours, trace.clock));
  }

  /** @param {Brush} brush */
  drawGrid({ context, view, colours }) {
    context.fillStyle = colours.grid;
    eachTick(view, rulerScale(view).step, (x) => context.fillRect(Math.round(x), 0, 1, this.height));
  }

  /** @param {Brush} brush @param {LaneRow[]} rows */
  drawRows(brush, rows) {
    const { context, view, colours } = brush;
    brush.strips.begin(Math.round(view.width * brush.ratio));
    for (const row of rows) {
      context.fillStyle = isGroup(row.node) ? colours.band : colours.grid;
      if (!isGroup(row.node)) context.fillRect(0, row.top + row.height - 1, view.width, 1);
      else context.fillRect(0, row.top, view.width, row.height);
      context.globalAlpha = this.scene.layers.hits?.starts.length ? DIMMED : 1;
      for (const part of this.partsOf(row)) {
        this.hasSums = drawPart(brush, row, part, segmentsOf(this.ranked, part, view)) || this.hasSums;
      }
      context.globalAlpha = 1;
      if (row.node.series) drawCounter(brush, row, row.node.series, this.pieces(row.node.series));
    }
    context.globalAlpha = this.scene.layers.hits?.starts.length ? DIMMED : 1;
    brush.strips.paint(context, view.width);
    context.globalAlpha = 1;
  }

  /** @param {Brush} brush */
  drawSelection(brush) {
    const { selection } = this.scene;
    const { info, spot } = selection;
    if (this.hovered?.kind === 'task') drawOutline(brush, this.layout, this.hovered, false);
    if (this.hovered?.kind === 'counter') this.drawHovered(brush, this.hovered);
    if (!info || !spot) return;
    for (const other of info.released_by) this.arrow(brush, selection.spotOf(other), spot, true);
    for (const other of info.releases) this.arrow(brush, spot, selection.spotOf(other), false);
    drawOutline(brush, this.layout, spot, true);
  }

  /** @param {Brush} brush @param {CounterHit} hit */
  drawHovered(brush, hit) {
    const row = this.layout.rows.find((other) => other.node.series === hit.series);
    if (row && row.top >= this.layout.pinnedHeight) drawDot(brush, row, hit);
  }

  /** What draws a counter. @param {Series} series */
  pieces({ number }) {
    const { view, counters } = this.scene;
    return piecesOf(counters.ranked(number, view.now.span / view.width), view);
  }

  /** @param {Brush} brush @param {Spot | null} source @param {Spot | null} target @param {boolean} isBack */
  arrow(brush, source, target, isBack) {
    if (source && target) drawArrow(brush, this.layout, source, target, isBack);
  }

  drawRuler() {
    const { view, state } = this.scene;
    drawRuler(this.brush(fitCanvas(this.rulerCanvas, view.width, RULER_HEIGHT)), state.now);
  }

  /** What lies below a point of the canvas. @param {number} x @param {number} y @returns {TaskHit | SumHit | CounterHit | null} */
  hit(x, y) {
    const found = placeAt(this.layout, y);
    if (!found) return null;
    const { series } = found.place.node;
    if (series) return hitCounter(this.scene.view, series, this.pieces(series), x);
    return hitLane(this.scene.view, segmentsOf(this.ranked, partOf(found.lane, found.row), this.scene.view), found.lane, found.row, x);
  }

  /** The same, or the instant of a layer above it. @param {number} x @param {number} y @returns {Hit | null} */
  sight(x, y) {
    return hitInstant(this.scene.view, this.layout, this.scene.layers.shown, x, y) ?? this.hit(x, y);
  }

  /** @param {Hit | null} hit */
  hover(hit) {
    const same = hit && this.hovered && hit.kind === 'task' && this.hovered.kind === 'task' && hit.task === this.hovered.task;
    if (same || hit === this.hovered) return;
    this.hovered = hit;
    this.request();
  }

  /** The task beside another one in its row, or the first one in sight. @param {Spot | null} spot @param {1 | -1} way */
  beside(spot, way) {
    if (!spot) return this.firstInSight();
    const row = this.shownTasks(spot.lane, spot.row);
    return (way > 0 ? row.find((hit) => hit.start > spot.start) : row.reverse().find((hit) => hit.start < spot.start)) ?? null;
  }

  /** The task nearest in time in the next row above or below that has one. @param {Spot | null} spot @param {1 | -1} way */
  across(spot, way) {
    if (!spot) return this.firstInSight();
    const rows = this.layout.rows.flatMap((row) => lanesDrawn(row).flatMap((lane) =>
      Array.from({ length: row.isOpen ? row.node.lane?.rows ?? 1 : 1 }, (_, at) => ({ lane, row: at }))));
    const at = rows.findIndex((other) => other.lane === spot.lane && other.row === spot.row);
    const distance = (/** @type {TaskHit} */ hit) => Math.max(0, Number(hit.start - spot.start), Number(spot.start - hit.finish));
    for (let next = at + way; next >= 0 && next < rows.length; next += way) {
      const hits = this.shownTasks(rows[next].lane, rows[next].row);
      if (hits.length) return hits.reduce((best, hit) => (distance(hit) < distance(best) ? hit : best));
    }
    return null;
  }

  firstInSight() {
    for (const part of rowsInSight(this.layout, this.height).flatMap((row) => this.partsOf(row))) {
      const found = this.tasksOf(part).find((hit) => hit.finish > this.scene.view.range.from);
      if (found) return found;
    }
    return null;
  }

  /** The tasks of a row that are drawn one by one. @param {number} lane @param {number} row */
  shownTasks(lane, row) {
    return this.tasksOf(partOf(lane, row)).filter((hit) => hit.row === row);
  }

  /** @param {number} part of a lane */
  tasksOf(part) {
    return tasksShown(segmentsOf(this.ranked, part, this.scene.view), laneOf(part));
  }

  /** Scrolls so that a lane is in sight, after opening what it is collapsed into. @param {number} lane @param {number} row */
  revealLane(lane, row) {
    const { state, tree } = this.scene;
    const parents = tree.parentsOf(lane);
    const { closed, hidden, open } = state.now;
    const isClosed = this.layout.rowOf.get(lane)?.node.id !== lane || closed.includes(lane);
    if (isClosed) {
      const above = [lane, ...parents];
      state.set({
        closed: closed.filter((id) => !above.includes(id)), hidden: hidden.filter((id) => !above.includes(id)),
        open: [...new Set([...open, ...above])],
      });
    }
    const place = this.layout.rowOf.get(lane);
    if (!place || place.isPinned) return;
    const top = place.y + (row < (place.node.lane?.rows ?? 0) ? row * ROW_PITCH : 0);
    const room = this.height - this.layout.pinnedHeight;
    const { scrollTop } = this.scroller;
    if (top < scrollTop || top + 24 > scrollTop + room) this.scroller.scrollTop = top - room / 2;
    this.request();
  }
}
