/**
 * Time. Ticks are 64-bit integers, so absolute ones are BigInt throughout; this module writes them and durations as text
 * (`4.94 ms`, three digits), reads them back, and finds the 1-2-5 steps of the ruler. A tick is a power of ten of a second,
 * or, in traces of weights, a plain number.
 */

/** @typedef {{seconds: number} | {weights: true}} Tick */
/** @typedef {{name: string, ticks: bigint}} Unit */

const SI_TIMES = /** @type {const} */ ([['s', 0], ['ms', -3], ['µs', -6], ['ns', -9], ['ps', -12], ['fs', -15]]);
const SI_COUNTS = /** @type {const} */ ([['G', 9], ['M', 6], ['k', 3], ['', 0]]);

/** The smaller of two BigInts. @param {bigint} a @param {bigint} b */
export function least(a, b) {
  return a < b ? a : b;
}

/** The larger of two BigInts. @param {bigint} a @param {bigint} b */
export function most(a, b) {
  return a > b ? a : b;
}

/** Rounds towards minus infinity. @param {bigint} a @param {bigint} b positive */
export function floorDivide(a, b) {
  return a >= 0n ? a / b : -((-a + b - 1n) / b);
}

/** Reads ticks as the server writes them; null where the text is no integer. @param {string | null | undefined} text */
export function parseTicks(text) {
  return text && /^-?\d{1,19}$/.test(text) ? BigInt(text) : null;
}

/** Writes times of one trace. */
export class Clock {
  /** @param {Tick} tick */
  constructor(tick) {
    const isTime = 'seconds' in tick;
    const exponent = isTime ? Math.round(Math.log10(tick.seconds)) : 0;
    this.isTime = isTime;
    /** From large to small, none smaller than a tick. @type {Unit[]} */
    this.units = (isTime ? SI_TIMES : SI_COUNTS)
      .filter(([, power]) => power >= exponent)
      .map(([name, power]) => ({ name, ticks: 10n ** BigInt(power - exponent) }));
  }

  /** The largest unit that is not larger than so many ticks. @param {bigint} ticks @returns {Unit} */
  unit(ticks) {
    const size = ticks < 0n ? -ticks : ticks;
    return this.units.find((unit) => unit.ticks <= size) ?? this.units[this.units.length - 1];
  }

  /** A duration with three digits: `4.94 ms`. @param {bigint | number} ticks @returns {string} */
  text(ticks) {
    const whole = typeof ticks === 'bigint' ? ticks : BigInt(Math.round(ticks));
    if (whole === 0n) return this.isTime ? '0 s' : '0';
    let unit = this.unit(whole);
    let value = Number(whole) / Number(unit.ticks);
    const next = this.units[this.units.indexOf(unit) - 1];
    if (next && Math.abs(value) >= 999.5) {
      unit = next;
      value = Number(whole) / Number(unit.ticks);
    }
    const digits = unit.ticks === 1n ? grouped(whole) : threeDigits(value);
    return `${digits}${unit.name ? ` ${unit.name}` : ''}`;
  }

  /** An instant with all the digits that steps of `step` ticks need. @param {bigint} instant @param {bigint} step */
  instant(instant, step) {
    const unit = this.unit(instant === 0n ? step : instant);
    return `${decimal(instant, unit.ticks, step)}${unit.name ? ` ${unit.name}` : ''}`;
  }

  /** An instant to the tick: `12.345678 ms`. @param {bigint} instant */
  exact(instant) {
    return this.instant(instant, 1n);
  }
}

/** Three significant digits of a number, larger whole ones in full. @param {number} value */
function threeDigits(value) {
  return Math.abs(value) >= 99.95 ? grouped(Math.round(value)) : value.toPrecision(3);
}

/** `ticks / unit` as decimal text, exact up to the digit that `step` needs. @param {bigint} ticks @param {bigint} unit @param {bigint} step */
function decimal(ticks, unit, step) {
  const sign = ticks < 0n ? '-' : '';
  const size = ticks < 0n ? -ticks : ticks;
  const digits = String(unit).length - 1;
  const needed = step >= unit ? 0 : Math.max(0, digits - (String(step).length - 1));
  const fraction = digits ? String(size % unit).padStart(digits, '0').slice(0, needed) : '';
  return `${sign}${size / unit}${fraction && `.${fraction}`}`;
}

/**
 * The step of a ruler: 1, 2 or 5 times a power of ten, at least `least` ticks.
 * @param {number} atLeast @returns {bigint}
 */
export function rulerStep(atLeast) {
  let power = 1n;
  while (Number(power) * 10 <= atLeast) power *= 10n;
  for (const factor of [1n, 2n, 5n]) if (Number(power * factor) >= atLeast) return power * factor;
  return power * 10n;
}

/** A whole number with thin spaces between thousands. @param {string | number | bigint} count */
export function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** @param {number} share */
export function percent(share) {
  const value = share * 100;
  if (value > 0 && value < 0.1) return '<0.1\u202f%';
  return `${value >= 10 ? Math.round(value) : Number(value.toPrecision(2))}\u202f%`;
}
