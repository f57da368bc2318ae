/**
 * The line below the timeline that says what colours mean, where they mean something else than names: swatches, scales of
 * numbers with their ends, and signs.
 */

import { make, part } from './dom.js';
import { FACTOR_LAYER, LAYER_TITLES, OWN_LAYER } from './layers.js';
import { GREY } from './palette.js';
import { shortNumber } from './series.js';
import { tintOf, valueText } from './tints.js';
/** @import { Layer } from './layers.js' */
/** @import { Scene, Timeline } from './timeline.js' */

const MOST_SWATCHES = 10;

export class Legend {
  /** @param {Scene} scene @param {Timeline} timeline */
  constructor(scene, timeline) {
    this.scene = scene;
    this.timeline = timeline;
    /** What is shown: made again when one of it changes. @type {unknown[]} */
    this.shown = [];
  }

  show() {
    const { state, layers, colouring } = this.scene;
    const shown = [state.now.colour, this.timeline.colours, colouring.spans, ...layers.shown.map(({ spans }) => spans)];
    if (shown.length === this.shown.length && shown.every((one, at) => one === this.shown[at])) return;
    this.shown = shown;
    const items = [...this.colours(), ...layers.shown.filter(({ name }) => !colouring.shows(name)).flatMap((layer) => this.layer(layer) ?? [])];
    part('legend').hidden = !items.length;
    part('legend').replaceChildren(...items);
  }

  /** @returns {HTMLElement[]} */
  colours() {
    const { colouring, trace } = this.scene;
    const { by } = colouring;
    if (by === FACTOR_LAYER) return this.factors();
    if (by === 'kind') return [this.swatches('Kind', colouring.kinds)];
    if (by === 'location') return [this.swatches(trace.hasRuns ? 'Location, the same in all runs' : 'Location', colouring.locations)];
    if (by !== 'layer') return this.names();
    const others = this.others();
    const { spans, words, taskHues } = colouring;
    if (!spans || !taskHues.size) return [item('Layer', 'there is none with tasks: below SQL, As a layer makes one of any SELECT with task, and value or label')];
    if (!words.length && !spans.scale) return [item('Layer', make('span', {}, this.swatch(0), 'its tasks'), others)];
    if (!spans.scale) return [this.swatches('Layer', words), others];
    const [least, most] = [spans.scale.least, spans.scale.most].map((end) => valueText(spans, trace.clock, end));
    return [item('Layer', scale(least, gradientOf(this.timeline.colours.scale), most)), others];
  }

  /** The names that have a hue of their own. */
  names() {
    const { trace } = this.scene;
    const found = trace.names.map((text, at) => ({ text, hue: trace.hueOf(at) })).filter(({ hue }) => hue !== GREY).sort((a, b) => a.hue - b.hue);
    if (!found.length) return [];
    const shown = found.slice(0, MOST_SWATCHES).map(({ text, hue }) => make('span', { class: 'word', title: text }, this.swatch(hue), text || '(unnamed)'));
    const more = found.length - shown.length;
    const others = trace.names.length > found.length ? make('span', {}, this.swatch(GREY), 'others') : null;
    return [item('Names', others, ...shown, more > 0 ? `and ${more} more` : null)];
  }

  factors() {
    const { furthest, isClipped } = this.scene.colouring;
    const times = `${shortNumber(furthest)} ×${isClipped ? ' or more' : ''}`;
    const ramp = gradientOf(this.timeline.colours.factors);
    return [item(LAYER_TITLES[FACTOR_LAYER], scale(`${times} faster`, ramp, `${times} slower than its name in the other run`)), this.others()];
  }

  others() {
    return make('span', {}, this.swatch(GREY), 'other tasks, and those summed up');
  }

  /** @param {string} title @param {string[]} words in the order of the hues */
  swatches(title, words) {
    const more = words.length - MOST_SWATCHES;
    return item(title, ...words.slice(0, MOST_SWATCHES).map((word, at) => make('span', {}, this.swatch(at), word || '(none)')),
      more > 0 ? `and ${more} more${words.length > GREY ? `, from the ${GREY + 1}st on grey` : ''}` : null);
  }

  /** @param {number} hue */
  swatch(hue) {
    const swatch = make('span', { class: 'swatch' });
    swatch.style.background = this.timeline.colours.hues[hue].fill;
    return swatch;
  }

  /** The colour of a layer of one's own. */
  own() {
    const swatch = make('span', { class: 'swatch' });
    swatch.style.background = this.timeline.colours.alert;
    return swatch;
  }

  /** @param {Layer} layer */
  layer({ name, spans }) {
    const { colours } = this.timeline;
    const title = `${LAYER_TITLES[name] ?? name}${spans.isCut ? ', the first of them' : ''}`;
    if (spans.areInstants) {
      return item(title, make('span', {}, make('span', { class: 'diamond' }), 'one instant each'));
    }
    if (name.endsWith('-path')) return null;
    if (!spans.scale) return name === OWN_LAYER ? item(title, make('span', {}, this.own(), 'its rows')) : null;
    const { ends, gradient } = tintOf(name, spans, colours, this.scene.trace.clock);
    return ends && item(title, scale(ends[0], gradient, ends[1]));
  }
}

/** @param {string} title @param {...import('./dom.js').Child} parts */
function item(title, ...parts) {
  return make('span', { class: 'item' }, make('strong', {}, title), ...parts);
}

/** @param {string[]} colours */
function gradientOf(colours) {
  return `linear-gradient(to right, ${colours.join(', ')})`;
}

/** @param {string} from @param {string} gradient @param {string} to */
function scale(from, gradient, to) {
  const ramp = make('span', { class: 'ramp' });
  ramp.style.background = gradient;
  return make('span', {}, from, ramp, to);
}
