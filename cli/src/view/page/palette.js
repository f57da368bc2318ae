/**
 * Colours. Twenty hues that people with a colour-vision deficiency tell apart, as in the charts of `tq report`, each with
 * its letters on a light and on a dark page; grey for waits and idle names; behind them the steps of a scale for numbers.
 * The theme follows the system unless the reader switches it.
 */

/** @typedef {'' | 'light' | 'dark'} Theme */
/** @typedef {{fill: string, soft: string, ink: string, fillPixel: number, softPixel: number}} Hue */
/**
 * @typedef {{hues: Hue[], paper: string, band: string, grid: string, ink: string, pale: string, accent: string, alert: string, veil: string,
 *   series: string, scale: string[], factors: string[]}} Colours
 */

/** Fill and whether its letters are dark (1), light then dark. @type {[string, number, string, number][]} */
const HUE_PAIRS = [
  ['#4477aa', 0, '#6699cc', 1], ['#ee6677', 1, '#f0808f', 1], ['#228833', 0, '#3fa652', 1], ['#ccbb44', 1, '#d6c75c', 1],
  ['#66ccee', 1, '#66ccee', 1], ['#aa3377', 0, '#cc6699', 1], ['#ee7733', 1, '#f0935c', 1], ['#009988', 1, '#33b3a6', 1],
  ['#7755bb', 0, '#a48be0', 1], ['#8c5a2b', 0, '#b98a5e', 1], ['#a9c3de', 1, '#3f6390', 0], ['#f7bcc3', 1, '#9c4a58', 0],
  ['#9fd3a8', 1, '#2c6b38', 0], ['#ebe2ad', 1, '#8a7f36', 0], ['#c3ebf8', 1, '#3a7f96', 0], ['#dca6c6', 1, '#7d3a60', 0],
  ['#f8cbad', 1, '#9c5a30', 0], ['#93d5cc', 1, '#1f736a', 0], ['#c9bbe8', 1, '#5d4a94', 0], ['#cdb294', 1, '#74512f', 0],
  ['#a5abb3', 1, '#6e7681', 0], ['#3d4f8f', 0, '#a9b8f0', 1],
];
export const GREY = 20;
/** The steps of the scale for numbers are hues as well, from this one on. */
const SCALE = HUE_PAIRS.length;
const SCALE_STEPS = 32;
/** Behind it those of factors, from faster to slower with equal in the middle. */
const FACTORS = SCALE + SCALE_STEPS;
const FACTOR_STEPS = 31;
/** From least to most: viridis, without the end that a light or a dark page would swallow. */
const LIGHT_STOPS = ['#bddf26', '#44bf70', '#21918c', '#355f8d', '#482475'];
const DARK_STOPS = ['#414487', '#2a788e', '#22a884', '#7ad151', '#fde725'];
const DARK_INK = '#0d1117';
const LIGHT_INK = '#ffffff';
const systemDark = matchMedia('(prefers-color-scheme: dark)');

/** @param {Theme} theme */
export function isDark(theme) {
  return theme ? theme === 'dark' : systemDark.matches;
}

/** Calls back when the system changes between light and dark. @param {() => void} changed */
export function onSystemTheme(changed) {
  systemDark.addEventListener('change', changed);
}

/** The index of a name's hue; the server gives 65535 for grey. @param {number} colour */
export function hueIndex(colour) {
  return colour < GREY ? colour : GREY;
}

/** The hue of a number between the least and the most of its scale. @param {number} value @param {{least: number, most: number}} scale */
export function scaleIndex(value, { least, most }) {
  return SCALE + Math.round((most > least ? (value - least) / (most - least) : 1) * (SCALE_STEPS - 1));
}

/** The hue of a factor. @param {number} way from -1, much faster, to 1, much slower */
export function factorIndex(way) {
  return FACTORS + Math.round((way + 1) / 2 * (FACTOR_STEPS - 1));
}

/** The colours of a theme, its neutral ones read from the style sheet. @param {Theme} theme @returns {Colours} */
export function coloursOf(theme) {
  const dark = isDark(theme);
  const style = getComputedStyle(document.documentElement);
  const named = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const paper = named('paper');
  const hueOf = (/** @type {string} */ fill, /** @type {boolean} */ hasDarkInk) => {
    const soft = mixed(fill, paper, 0.72);
    return { fill, soft, ink: hasDarkInk ? DARK_INK : LIGHT_INK, fillPixel: pixelOf(fill), softPixel: pixelOf(soft) };
  };
  const scale = dark ? DARK_STOPS : LIGHT_STOPS;
  const hues = HUE_PAIRS.map(([light, lightInk, night, nightInk]) => hueOf(dark ? night : light, Boolean(dark ? nightInk : lightInk)));
  const factors = [named('faster'), hues[GREY].soft, named('slower')];
  hues.push(...[...steps(scale, SCALE_STEPS), ...steps(factors, FACTOR_STEPS)].map((fill) => hueOf(fill, isBright(fill))));
  return {
    hues, scale, factors, paper, band: named('band'), grid: named('grid'), ink: named('ink'), pale: named('pale'), accent: named('accent'),
    alert: named('alert'), veil: named('veil'), series: named('series'),
  };
}

/** A colour #rrggbb as the bytes of a pixel: red first, opaque. @param {string} colour */
export function pixelOf(colour) {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | (value & 0xff) << 16 | value & 0xff00 | value >> 16) >>> 0;
}

/** @param {string} a @param {string} b two colours as #rrggbb @param {number} share of the first */
function mixed(a, b, share) {
  const part = (/** @type {string} */ colour, /** @type {number} */ at) => parseInt(colour.slice(at, at + 2), 16);
  const parts = [1, 3, 5].map((at) => Math.round(part(a, at) * share + part(b, at) * (1 - share)));
  return `#${parts.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** Colours from the first to the last of some, in equal steps. @param {string[]} stops @param {number} count */
function steps(stops, count) {
  return Array.from({ length: count }, (_, step) => {
    const place = step / (count - 1) * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2);
    return mixed(stops[at + 1], stops[at], place - at);
  });
}

/** Whether dark letters are read better on it. @param {string} colour */
function isBright(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 120;
}

/** Applies a theme to the page: an attribute for the style sheet. @param {Theme} theme */
export function applyTheme(theme) {
  document.documentElement.dataset.theme = isDark(theme) ? 'dark' : 'light';
}
