/**
 * Small helpers to build elements. Text from traces only ever becomes text nodes.
 */

/** @typedef {Node | string | null | undefined | false} Child */

/** What cannot be seen, or turns the direction of what follows, is written out, as reports do. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** @param {string} text */
export function visible(text) {
  return text.replace(HIDDEN, (letter) => `\\u{${letter.charCodeAt(0).toString(16)}}`);
}

/**
 * Makes an element: properties that start with `on` become listeners, `class` and names with a dash attributes, others properties.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Record<string, any>} [properties] @param {...Child} children @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class' || name === 'role' || name.includes('-')) element.setAttribute(name, visible(String(value)));
    else if (name === 'title') element.title = visible(value);
    else /** @type {any} */ (element)[name] = value;
  }
  for (const child of children) if (child) element.append(child instanceof Node ? child : visible(child));
  return element;
}

/** @template {HTMLElement} T @param {string} id @param {{new (): T}} type @returns {T} */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} id @returns {HTMLElement} */
export function part(id) {
  return byId(id, HTMLElement);
}

/** Shows a failure above the timeline until it is dismissed or something works again. @param {unknown} error */
export function showError(error) {
  const { message, hint } = /** @type {{message?: string, hint?: string}} */ (error);
  const banner = part('banner');
  banner.hidden = false;
  banner.replaceChildren(
    make('strong', {}, withCode(message || String(error))), hint ? make('span', {}, withCode(hint)) : '',
    make('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss the message', onclick: hideError }, '×'),
  );
}

/** What stands between backticks in a message is code. @param {string} text */
function withCode(text) {
  return make('span', {}, ...text.split('`').map((part, at) => (at % 2 ? make('code', {}, part) : part)));
}

export function hideError() {
  part('banner').hidden = true;
}

/** Whether an event goes to something in which one types. @param {EventTarget | null} target */
export function isTyping(target) {
  return target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}

/** Sizes a canvas to its element, in device pixels. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function fitCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.max(Math.round(width * ratio), 1), Math.max(Math.round(height * ratio), 1)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Saves text as a file of the reader. @param {string} name @param {string} type @param {BlobPart} content */
export function saveFile(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
