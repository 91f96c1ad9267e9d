import { type FieldError, MOST_ERRORS, pointerStep } from '../errors.js';
import { JsonOutline } from '../json-outline.js';
import { JsonText } from '../json-reader.js';
import { INPUT, STEP_NAME_PATTERN } from '../workflow.js';

/**
 * References of a payload to what earlier steps returned, `{"$from": "a.result.path.0.x"}`, or to the input of the workflow,
 * `{"$from": "input.path"}`: an object with this one member. The place of the object is taken by the text of the value, to the letter. What was put in is never looked at again, so
 * that a result that looks like a reference stays what it is, and nothing can grow by itself.
 */

/** One reference in a payload. */
export interface Reference {
  /** The step; `input`, which no step may be called, is the input of the workflow. */
  readonly step: string;
  /** The way from the step's result, or the input, to the value; empty for all of it. */
  readonly path: readonly string[];
  /** Where the object that says so lies in the text of the payload. */
  readonly start: number;
  readonly end: number;
  readonly place: Place;
}

/** Where a value stands in a payload. */
export interface Place {
  readonly start: number;
  /** How many objects and arrays are around it. */
  readonly depth: number;
  readonly around: Place | null;
  readonly key: string | number;
}

/** The references of a payload in the order of its text, and what is wrong with those that cannot be read. */
export interface FoundReferences {
  readonly references: readonly Reference[];
  /** The pointers begin at the payload. */
  readonly errors: readonly FieldError[];
}

/** What a resolved payload must keep to. */
export interface ResolvedLimits {
  readonly maxBytes: number;
  readonly maxDepth: number;
}

/** Why the references of a payload cannot be resolved. */
export interface UnresolvedReference {
  readonly code:
    | 'INVALID_REFERENCE'
    | 'MISSING_RESULT'
    | 'MISSING_PATH'
    | 'PAYLOAD_TOO_LARGE'
    | 'PAYLOAD_TOO_DEEP';
  readonly message: string;
}

/** A payload without references, or why there is none. */
export type Resolution =
  | { readonly payload: JsonText; readonly error?: undefined }
  | { readonly payload?: undefined; readonly error: UnresolvedReference };

/** The most references of one payload: one to every other step. */
export const MOST_REFERENCES = 10_000;

const KEY = '$from';
const NO_REFERENCES: FoundReferences = { references: [], errors: [] };
const FORM =
  'must be the name of a step and ".result", or "input", then perhaps a path, such as "render.result.pages.0" or "input.page"';
/** Parts of a path are bounded like those of filters by payload, their number by the depth that JSON may have. */
const MOST_PARTS = 64;
const MOST_PART_LENGTH = 128;

/** Places in a payload that are looked at between two pauses of the search. */
const PLACES_AT_ONCE = 1_000;

/** Finds the references of a payload, which must be valid JSON, at once. */
export function findReferences(payload: JsonText): FoundReferences {
  const search = searchReferences(payload);
  for (;;) {
    const step = search.next();
    if (step.done) return step.value;
  }
}

/** Whether there may be any; a look at the text, which most payloads end with. The key may be written with escapes, too. */
export function mayRefer({ text }: JsonText): boolean {
  return text.includes(KEY) || text.includes('\\u');
}

/** Finds them with pauses: a payload may consist of a hundred thousand small lists. */
export function* searchReferences(payload: JsonText): Generator<void, FoundReferences, void> {
  if (!mayRefer(payload)) return NO_REFERENCES;
  const outline = new JsonOutline(payload.text);
  const references: Reference[] = [];
  const errors: FieldError[] = [];
  const open: Place[] = [{ start: outline.root, depth: 0, around: null, key: '' }];
  let looked = 0;
  for (let place = open.pop(); place && errors.length <= MOST_ERRORS; place = open.pop()) {
    looked += 1;
    if (looked % PLACES_AT_ONCE === 0) yield;
    const saying = sayingOf(outline, place.start);
    if (saying === null) addChildren(outline, place, open);
    else {
      const reference = readReference(outline, saying, place);
      if (reference) references.push(reference);
      else errors.push({ pointer: pointerTo(place) + pointerStep(KEY), detail: FORM });
    }
    if (references.length > MOST_REFERENCES) {
      return {
        references: [],
        errors: [{ pointer: '', detail: `has more than ${MOST_REFERENCES} "${KEY}"` }],
      };
    }
  }
  references.sort((a, b) => a.start - b.start);
  return { references, errors };
}

/** The value of `$from` if the object has this one member, else null. */
function sayingOf(outline: JsonOutline, start: number): number | null {
  if (!outline.isObject(start)) return null;
  const members = outline.membersOf(start);
  return members.size === 1 ? (members.get(KEY) ?? null) : null;
}

function addChildren(outline: JsonOutline, place: Place, open: Place[]): void {
  const { start } = place;
  const depth = place.depth + 1;
  const children: Iterable<readonly [string | number, number]> = outline.isObject(start)
    ? outline.membersOf(start)
    : outline.isArray(start)
      ? outline.itemsOf(start).entries()
      : [];
  for (const [key, child] of children) {
    if (outline.depthOf(child) > 0) open.push({ start: child, depth, around: place, key });
  }
}

function readReference(outline: JsonOutline, saying: number, place: Place): Reference | null {
  if (!outline.isText(saying)) return null;
  const parsed = parseReference(JSON.parse(outline.text.slice(saying, outline.endOf(saying))) as string);
  return parsed && { ...parsed, start: place.start, end: outline.endOf(place.start), place };
}

/** Whether a reference is to the input of the workflow. */
export function isToInput({ step }: Pick<Reference, 'step'>): boolean {
  return step === INPUT;
}

/** The step and the path that a text such as `a.result.path` means; null if it means none. */
export function parseReference(text: string): Pick<Reference, 'step' | 'path'> | null {
  const [step, ...rest] = text.split('.', MOST_PARTS + 3);
  const [field, ...path] = step === INPUT ? ['result', ...rest] : rest;
  if (!STEP_NAME_PATTERN.test(step!) || field !== 'result' || path.length > MOST_PARTS) return null;
  return path.every((part) => part.length > 0 && part.length <= MOST_PART_LENGTH)
    ? { step: step!, path }
    : null;
}

/** The JSON pointer from the payload to a place in it. */
export function pointerTo(place: Place): string {
  const steps: string[] = [];
  for (let at = place; at.around; at = at.around) steps.push(pointerStep(at.key));
  return steps.reverse().join('');
}

/** The outline of a step's result. One serves all payloads that refer to it. */
export function outlineResult(result: JsonText): JsonOutline {
  return new JsonOutline(result.text);
}

/**
 * Puts results in the places of references. `resultOf` knows the result of each step that succeeded, and null for others.
 * Sizes are added up before anything is built. The references may have been found before.
 */
export function resolveReferences(
  payload: JsonText,
  resultOf: (step: string) => JsonOutline | null,
  limits: ResolvedLimits,
  { references, errors }: FoundReferences = findReferences(payload),
): Resolution {
  if (errors[0]) return invalidReference(errors[0]);
  if (references.length === 0) return { payload };
  const parts: string[] = [];
  let from = 0;
  let bytes = payload.bytes;
  for (const reference of references) bytes -= Buffer.byteLength(textOf(payload, reference));
  for (const reference of references) {
    const { step, path, start, end, place } = reference;
    const result = resultOf(step);
    if (!result)
      return missing('MISSING_RESULT', reference, 'the step has no result, because it did not succeed');
    const value = findPath(result, path);
    if (typeof value !== 'number') return missing('MISSING_PATH', reference, value.missing);
    if (place.depth + result.depthOf(value) > limits.maxDepth) return tooDeep(reference, limits);
    const valueEnd = result.endOf(value);
    // A text has at least as many bytes as characters: what is too long is not even measured.
    if (bytes + valueEnd - value > limits.maxBytes) return tooLarge(reference, limits);
    const text = result.text.slice(value, valueEnd);
    bytes += Buffer.byteLength(text);
    if (bytes > limits.maxBytes) return tooLarge(reference, limits);
    parts.push(payload.text.slice(from, start), text);
    from = end;
  }
  parts.push(payload.text.slice(from));
  return { payload: new JsonText(parts.join(''), bytes) };
}

function invalidReference({ pointer, detail }: FieldError): Resolution {
  return { error: { code: 'INVALID_REFERENCE', message: `/payload${pointer}: ${detail}.` } };
}

function textOf(payload: JsonText, { start, end }: Reference): string {
  return payload.text.slice(start, end);
}

/** Where the value at the end of a path begins, or what is missing on the way, after how many parts. */
export function findPath(
  result: JsonOutline,
  path: readonly string[],
  called = 'result',
): number | { readonly missing: string; readonly parts: number } {
  let value = result.root;
  for (const [i, part] of path.entries()) {
    const child = result.childOf(value, part);
    if (child === null) {
      const way = [called, ...path.slice(0, i)].join('.');
      return { missing: `"${way}" is ${kindOf(result, value)} without "${part}"`, parts: i + 1 };
    }
    value = child;
  }
  return value;
}

const KINDS: Readonly<Record<string, string>> = {
  '{': 'an object',
  '[': 'a list',
  '"': 'a text',
  t: 'true',
  f: 'false',
  n: 'null',
};

function kindOf(result: JsonOutline, value: number): string {
  return KINDS[result.text[value]!] ?? 'a number';
}

function missing(code: 'MISSING_RESULT' | 'MISSING_PATH', reference: Reference, why: string): Resolution {
  return { error: { code, message: `The payload needs "${nameOf(reference)}": ${why}.` } };
}

function tooLarge(reference: Reference, { maxBytes }: ResolvedLimits): Resolution {
  const message = `With "${nameOf(reference)}" put in, the payload is larger than ${maxBytes} bytes.`;
  return { error: { code: 'PAYLOAD_TOO_LARGE', message } };
}

function tooDeep(reference: Reference, { maxDepth }: ResolvedLimits): Resolution {
  const message = `With "${nameOf(reference)}" put in, the payload is nested deeper than ${maxDepth} levels.`;
  return { error: { code: 'PAYLOAD_TOO_DEEP', message } };
}

/** The reference as its author wrote it. */
export function nameOf({ step, path }: Pick<Reference, 'step' | 'path'>): string {
  return step === INPUT ? [step, ...path].join('.') : [step, 'result', ...path].join('.');
}
