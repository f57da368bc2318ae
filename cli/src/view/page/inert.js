/**
 * Markup of the server (charts and tables of saved queries) made inert: parsed apart from the page, then copied node by
 * node, and only elements and attributes of a short list. Scripts, links and everything else are left behind. A chart keeps its
 * styles, in a shadow tree, so that those of one do not touch another.
 */

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';
const SVG_ELEMENTS = new Set(['svg', 'g', 'path', 'rect', 'text', 'tspan', 'title', 'desc', 'line', 'circle', 'ellipse', 'polyline', 'polygon']);
const HTML_ELEMENTS = new Set([
  'table', 'thead', 'tbody', 'tfoot', 'tr', 'th', 'td', 'caption', 'p', 'ul', 'ol', 'li', 'strong', 'em', 'code', 'span', 'div', 'br',
]);
const ALLOWED_ATTRIBUTES = new Set([
  'class', 'x', 'y', 'x1', 'x2', 'y1', 'y2', 'cx', 'cy', 'r', 'rx', 'ry', 'd', 'points', 'width', 'height', 'viewBox', 'dx', 'dy', 'fill',
  'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'stroke-linecap', 'opacity', 'font-size', 'font-weight',
  'text-anchor', 'dominant-baseline', 'transform', 'colspan', 'rowspan', 'scope',
]);
const HARMLESS_VALUE = /^(?!.*url\()[^:;\\]*$/is;

/** @param {string} text @returns {Node} the chart, or nothing where it is no SVG */
export function inertSvg(text) {
  const root = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  const chart = root.localName === 'svg' ? copied(root) : null;
  if (!(chart instanceof Element)) return document.createDocumentFragment();
  chart.setAttribute('role', 'img');
  chart.setAttribute('aria-label', root.querySelector('title')?.textContent ?? 'Chart');
  const sheet = new CSSStyleSheet();
  sheet.replaceSync([...root.querySelectorAll('style')].map(stylesOf).join('') + FITTING);
  const host = document.createElement('div');
  host.tabIndex = 0;
  const shadow = host.attachShadow({ mode: 'open' });
  shadow.adoptedStyleSheets = [sheet];
  shadow.append(chart);
  return host;
}

/** As wide as there is room, and wide enough to be read. */
const FITTING = ':host{display:block;overflow-x:auto}svg{max-width:max(100%,560px);height:auto;display:block}';

/** The styles of a chart for the theme of the page. @param {Element} style */
function stylesOf(style) {
  const dark = document.documentElement.dataset.theme === 'dark';
  const text = style.textContent ?? '';
  if (/url\(|@import|\\/i.test(text)) return '';
  return text.replace(/\(prefers-color-scheme:\s*dark\)/g, dark ? 'all' : 'not all');
}

/** @param {string} text @returns {DocumentFragment} */
export function inertHtml(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(...children(new DOMParser().parseFromString(text, 'text/html').body));
  return fragment;
}

/** @param {Node} node @returns {Node[]} */
function children(node) {
  return [...node.childNodes].flatMap((child) => copied(child) ?? []);
}

/** @param {Node} node @returns {Node | null} */
function copied(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.nodeValue ?? '');
  if (!(node instanceof Element)) return null;
  const isSvg = node.namespaceURI === SVG_NAMESPACE;
  const name = node.localName;
  if (!(isSvg ? SVG_ELEMENTS : HTML_ELEMENTS).has(name)) return null;
  const copy = isSvg ? document.createElementNS(SVG_NAMESPACE, name) : document.createElement(name);
  for (const { name: attribute, value } of node.attributes) {
    if (ALLOWED_ATTRIBUTES.has(attribute) && HARMLESS_VALUE.test(value)) copy.setAttribute(attribute, value);
  }
  if (node.getAttribute('style') === 'text-align: right') copy.setAttribute('class', 'number');
  copy.append(...children(node));
  return copy;
}
