/**
 * How a layer tints spans: its colour, the depth of a value, and what the ends of its scale mean.
 */

import { shortNumber } from './series.js';
/** @import { Spans } from './overlays.js' */
/** @import { Colours } from './palette.js' */
/** @import { Clock } from './ticks.js' */

/**
 * @typedef {object} Tint
 * @property {string} colour
 * @property {(value: number | null) => number} depthOf opacity
 * @property {[string, string] | null} ends of the scale; null without one
 * @property {string} gradient of the scale, for the style sheet
 * @property {boolean} isLow whether it leaves what it covers to be seen: a wait lies where others run
 */

const LEAST_DEPTH = 0.12;
const MOST_DEPTH = 0.72;

/** A value of a layer, with its unit where it has one. @param {Spans} spans @param {Clock} clock @param {number} value */
export function valueText({ areTicks }, clock, value) {
  return areTicks ? clock.text(value) : shortNumber(value);
}

/** @param {string} name of the layer @param {Spans} spans @param {Colours} colours @param {Clock} clock @returns {Tint} */
export function tintOf(name, spans, colours, clock) {
  // What could end later is the contrary of the critical path.
  const colour = name === 'readiness' || name === 'slack' ? colours.accent : colours.alert;
  const most = Math.max(spans.scale?.most ?? 0, 0);
  const deep = (/** @type {number} */ depth) => `color-mix(in srgb, ${colour} ${depth * 100}%, transparent)`;
  return {
    colour,
    depthOf: (value) => (value === null || !most ? 0.5 : LEAST_DEPTH + (MOST_DEPTH - LEAST_DEPTH) * Math.max(value, 0) / most),
    ends: most ? [valueText(spans, clock, 0), valueText(spans, clock, most)] : null,
    gradient: `linear-gradient(to right, ${deep(LEAST_DEPTH)}, ${deep(MOST_DEPTH)})`,
    isLow: name === 'readiness',
  };
}
