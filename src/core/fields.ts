import { parseDuration } from './duration.js';
import { type FieldError, MOST_ERRORS, shortened } from './errors.js';

/** The rule for names of tasks, queues and schedules. */
export const NAME_PATTERN = /^[A-Za-z0-9._:-]{1,128}$/;
export const NAME_RULE = 'must be 1 to 128 letters, digits, ".", "_", "-" or ":"';

/**
 * Postgres text cannot hold NUL, and other control characters only hide what a name says. Half of a surrogate
 * pair would be stored as a replacement character, and two different keys would become the same.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here.
const CONTROL = /[\u0000-\u001f\u007f]|\p{Surrogate}/u;

const MOMENT = /^\d{4}-\d{2}-\d{2}[Tt](?!24)\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

/** The last moment that has four digits for its year, and so the last that can be written again. */
const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Milliseconds of an RFC 3339 moment, or null when it is not one (February 30th included). */
export function parseMoment(text: string): number | null {
  if (!MOMENT.test(text)) return null;
  const ms = Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  if (Number.isNaN(ms) || ms > LAST_MOMENT) return null;
  const day = Number(text.slice(8, 10));
  const lastDay = new Date(Date.UTC(Number(text.slice(0, 4)), Number(text.slice(5, 7)), 0)).getUTCDate();
  return day <= lastDay ? ms : null;
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Longer than any name that is allowed: what is cut here is wrong for its length alone. */
const MOST_STEP_LENGTH = 200;

/** A JSON pointer's escape for one step. */
export function pointerStep(name: string | number): string {
  return `/${shortened(String(name), MOST_STEP_LENGTH).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/**
 * Reads the fields of one object of an input and collects everything that is wrong with them, each with a
 * pointer, so that a user sees all mistakes at once. A reader method returns undefined for a field that is
 * absent or wrong; the caller asks `errors` before using what was read.
 */
export class FieldReader {
  readonly errors: FieldError[];
  private readonly object: Record<string, unknown>;
  private readonly pointer: string;

  constructor(input: unknown, pointer: string, known: readonly string[], errors: FieldError[] = []) {
    this.errors = errors;
    this.pointer = pointer;
    this.object = isPlainObject(input) ? input : {};
    if (!isPlainObject(input)) this.errors.push({ pointer, detail: 'must be an object' });
    for (const name of Object.keys(this.object)) {
      if (this.errors.length > MOST_ERRORS) return;
      if (!known.includes(name)) this.wrong(name, 'is not a known field');
    }
  }

  pointerTo(name: string): string {
    return this.pointer + pointerStep(name);
  }

  wrong(name: string, detail: string): undefined {
    this.errors.push({ pointer: this.pointerTo(name), detail });
    return undefined;
  }

  /** Complains about fields that are absent. */
  require(...names: string[]): void {
    for (const name of names) if (!this.has(name)) this.wrong(name, 'is required');
  }

  has(name: string): boolean {
    return this.object[name] !== undefined;
  }

  raw(name: string): unknown {
    return this.object[name];
  }

  name(name: string): string | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (typeof value !== 'string' || !NAME_PATTERN.test(value)) return this.wrong(name, NAME_RULE);
    return value;
  }

  text(name: string, maxLength: number): string | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (typeof value !== 'string') return this.wrong(name, 'must be text');
    if (value.length === 0 || value.length > maxLength) {
      return this.wrong(name, `must have 1 to ${maxLength} characters`);
    }
    if (CONTROL.test(value)) return this.wrong(name, 'must not contain control characters');
    return value;
  }

  integer(name: string, min: number, max: number): number | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (!Number.isInteger(value) || (value as number) < min || (value as number) > max) {
      return this.wrong(name, `must be a whole number from ${min} to ${max}`);
    }
    return value as number;
  }

  number(name: string, min: number, max: number): number | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !(value >= min && value <= max)) {
      return this.wrong(name, `must be a number from ${min} to ${max}`);
    }
    return value;
  }

  boolean(name: string): boolean | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (typeof value !== 'boolean') return this.wrong(name, 'must be true or false');
    return value;
  }

  oneOf<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (!(choices as readonly unknown[]).includes(value)) {
      return this.wrong(name, `must be ${choices.map((choice) => `"${choice}"`).join(' or ')}`);
    }
    return value as T;
  }

  duration(name: string): number | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    const ms = typeof value === 'string' ? parseDuration(value) : null;
    return ms ?? this.wrong(name, 'must be a duration such as "250ms", "30s", "20m", "6h" or "2d"');
  }

  moment(name: string): number | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    const ms = typeof value === 'string' ? parseMoment(value) : null;
    return ms ?? this.wrong(name, 'must be an RFC 3339 time such as "2026-12-24T18:00:00Z"');
  }

  /** A map from text to text, such as labels or headers. */
  texts(name: string, maxEntries: number, maxLength: number): Readonly<Record<string, string>> | undefined {
    const value = this.object[name];
    if (value === undefined) return undefined;
    if (!isPlainObject(value)) return this.wrong(name, 'must be an object of texts');
    const entries = Object.entries(value);
    if (entries.length > maxEntries) return this.wrong(name, `must have at most ${maxEntries} entries`);
    for (const [key, text] of entries) {
      const fits = typeof text === 'string' && text.length <= maxLength && !CONTROL.test(text);
      if (!fits || key === '' || key.length > 128 || CONTROL.test(key)) {
        this.errors.push({
          pointer: this.pointerTo(name) + pointerStep(key),
          detail: `must be text of at most ${maxLength} characters without control characters`,
        });
      }
    }
    return value as Record<string, string>;
  }

  /** A nested object with fields of its own. */
  nested(name: string, known: readonly string[]): FieldReader | undefined {
    if (!this.has(name)) return undefined;
    return new FieldReader(this.object[name], this.pointerTo(name), known, this.errors);
  }
}
