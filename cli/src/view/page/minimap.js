/**
 * The whole trace in a strip above the ruler: how many lanes are busy over time, hits of the search, marks, and a frame
 * around what is visible, which can be dragged; a press elsewhere moves the frame there.
 */

import { byId, fitCanvas } from './dom.js';
import { address, fetchColumns } from './wire.js';
/** @import { Colours } from './palette.js' */
/** @import { Scene } from './timeline.js' */

export const MINIMAP_HEIGHT = 36;
const OVERVIEW_BINS = 512;
const EDGE = 5;

export class Minimap {
  /** @param {Scene} scene */
  constructor(scene) {
    this.scene = scene;
    this.canvas = byId('minimap', HTMLCanvasElement);
    /** The share of lanes that are busy in each bin. */
    this.busy = new Float64Array(OVERVIEW_BINS);
    this.grip = { part: '', x: 0 };
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    this.canvas.addEventListener('pointermove', (event) => this.drag(event));
    this.canvas.addEventListener('pointerup', () => { this.grip.part = ''; });
    this.canvas.addEventListener('dblclick', () => scene.view.show(scene.view.home));
  }

  /** Loads how busy the lanes are over time. */
  async load() {
    const answer = await fetchColumns(address('busy'));
    const shares = answer.table('busy').numbers('share');
    const { from, to } = this.scene.trace.bounds;
    const [first, last] = [BigInt(answer.header.from), BigInt(answer.header.to)];
    const [offset, scale] = [Number(first - from), Number(last - first) / Math.max(shares.length, 1)];
    for (let bin = 0; bin < OVERVIEW_BINS; bin++) {
      const tick = Number(to - from) * (bin + 0.5) / OVERVIEW_BINS - offset;
      this.busy[bin] = tick < 0 ? 0 : shares[Math.floor(tick / scale)] ?? 0;
    }
  }

  get width() {
    return this.scene.view.width;
  }

  /** Pixels of an instant. @param {bigint} tick */
  x(tick) {
    const { from, to } = this.scene.trace.bounds;
    return Number(tick - from) / Number(to - from) * this.width;
  }

  /** @param {number} x @returns {bigint} */
  tick(x) {
    const { from, to } = this.scene.trace.bounds;
    return from + BigInt(Math.round(x / this.width * Number(to - from)));
  }

  /** The frame around what is visible. */
  get frame() {
    const { from, to } = this.scene.view.range;
    const left = Math.min(Math.max(this.x(from), 0), this.width - 3);
    return { left, right: Math.max(Math.min(this.x(to), this.width), left + 3) };
  }

  /** @param {Colours} colours */
  draw(colours) {
    const context = fitCanvas(this.canvas, this.width, MINIMAP_HEIGHT);
    context.clearRect(0, 0, this.width, MINIMAP_HEIGHT);
    this.drawBusy(context, colours.pale);
    this.drawHits(context, colours.alert);
    context.fillStyle = colours.alert;
    for (const mark of this.scene.state.now.marks) context.fillRect(this.x(mark), 0, 1, MINIMAP_HEIGHT);
    this.drawFrame(context, colours);
  }

  /** @param {CanvasRenderingContext2D} context @param {string} colour */
  drawBusy(context, colour) {
    const bin = this.width / OVERVIEW_BINS;
    context.fillStyle = colour;
    context.globalAlpha = 0.6;
    context.beginPath();
    context.moveTo(0, MINIMAP_HEIGHT);
    this.busy.forEach((busy, at) => {
      const y = MINIMAP_HEIGHT - (busy > 0 ? Math.max(busy * (MINIMAP_HEIGHT - 6), 1) : 0);
      context.lineTo(at * bin, y);
      context.lineTo((at + 1) * bin, y);
    });
    context.lineTo(this.width, MINIMAP_HEIGHT);
    context.fill();
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {string} colour */
  drawHits(context, colour) {
    const { hits } = this.scene.layers;
    if (!hits) return;
    context.fillStyle = colour;
    const { from, to } = this.scene.trace.bounds;
    const origin = this.x(hits.from);
    const scale = this.width / Number(to - from);
    const columns = new Set();
    for (const start of hits.starts) columns.add(Math.round(origin + start * scale));
    for (const x of columns) context.fillRect(x, 0, 1, 6);
  }

  /** @param {CanvasRenderingContext2D} context @param {Colours} colours */
  drawFrame(context, { veil, accent }) {
    const { left, right } = this.frame;
    context.fillStyle = veil;
    context.fillRect(0, 0, left, MINIMAP_HEIGHT);
    context.fillRect(right, 0, this.width - right, MINIMAP_HEIGHT);
    context.strokeStyle = accent;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, 0.5, right - left - 1, MINIMAP_HEIGHT - 1);
    context.fillStyle = accent;
    context.fillRect(left, MINIMAP_HEIGHT / 2 - 7, 3, 14);
    context.fillRect(right - 3, MINIMAP_HEIGHT / 2 - 7, 3, 14);
  }

  /** @param {PointerEvent} event */
  press(event) {
    const x = event.offsetX;
    const { left, right } = this.frame;
    this.canvas.setPointerCapture(event.pointerId);
    if (Math.abs(x - left) < EDGE) this.grip = { part: 'left', x: 0 };
    else if (Math.abs(x - right) < EDGE) this.grip = { part: 'right', x: 0 };
    else {
      const middle = (left + right) / 2;
      this.grip = { part: 'all', x: x > left && x < right ? x - middle : 0 };
      if (!this.grip.x) this.drag(event);
    }
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const { view } = this.scene;
    const x = Math.min(Math.max(event.offsetX, 0), this.width);
    const { from, to } = view.range;
    const at = this.tick(x);
    if (this.grip.part === 'left' && at < to) view.show({ from: at, to }, true);
    if (this.grip.part === 'right' && at > from) view.show({ from, to: at }, true);
    if (this.grip.part === 'all') {
      const start = this.tick(x - this.grip.x) - (to - from) / 2n;
      view.show({ from: start, to: start + (to - from) }, event.type === 'pointermove');
    }
    const { left, right } = this.frame;
    this.canvas.style.cursor = Math.min(Math.abs(x - left), Math.abs(x - right)) < EDGE ? 'ew-resize' : 'pointer';
  }
}
