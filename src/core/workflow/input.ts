import { type FieldError, invalid, MOST_ERRORS, PunctualError, pointerStep } from '../errors.js';
import { JsonOutline } from '../json-outline.js';
import { JsonText } from '../json-reader.js';
import { inSlices, TimeSlice } from '../time-slice.js';
import { INPUT } from '../workflow.js';
import {
  findPath,
  isToInput,
  nameOf,
  type Reference,
  type ResolvedLimits,
  searchReferences,
} from './references.js';

/**
 * The input of a workflow: `{"$from": "input.path"}` in the payload of a step becomes a part of it, to the letter, when the
 * workflow is submitted. What a step is stored with holds no reference to the input any more.
 */

/** What the payloads of a workflow must keep to once the input is put in. */
export interface InputLimits extends ResolvedLimits {
  /** Of all payloads together: a short list of steps could make much of one input. */
  readonly maxTotalBytes: number;
}

/** A payload in which references are to be resolved. */
export interface OpenPayload {
  readonly step: string;
  readonly payload: JsonText;
  readonly references: readonly Reference[];
}

/** Where the input stands in a request. */
const AT = `/${INPUT}`;

/**
 * Reads the input, which is as large as a payload at most. It may not hold references of its own: a payload that is completed later, with the results of steps, would
 * be searched for them again.
 */
export async function outlineInput(input: JsonText | null): Promise<JsonOutline | null> {
  if (input === null) return null;
  const { references, errors } = await inSlices(searchReferences(input));
  if (references.length > 0 || errors.length > 0)
    throw invalid([{ pointer: AT, detail: 'must not hold an object that has "$from" alone' }]);
  return new JsonOutline(input.text);
}

/** Throws if the input is larger than a payload may be. */
export function mustFitInput(input: JsonText, maxPayload: number): void {
  if (input.bytes <= maxPayload) return;
  const detail = `must be at most ${maxPayload} bytes as JSON`;
  throw new PunctualError('PAYLOAD_TOO_LARGE', `${AT}: ${detail}`, { errors: [{ pointer: AT, detail }] });
}

/** The payloads with the input put in, in their order; throws what is missing in the input, or what becomes too large. */
export async function putInput(
  payloads: readonly OpenPayload[],
  input: JsonOutline | null,
  limits: InputLimits,
): Promise<JsonText[]> {
  const errors: FieldError[] = [];
  const resolved: JsonText[] = [];
  const slice = new TimeSlice();
  let total = 0;
  for (const open of payloads) {
    if (slice.isOver) await slice.next();
    if (errors.length > MOST_ERRORS) break;
    const payload = putInto(open, input, limits, errors);
    if (!payload) continue;
    total += payload.bytes;
    if (total > limits.maxTotalBytes) {
      const detail = `with it put in, the payloads of all steps are larger than ${limits.maxTotalBytes} bytes`;
      throw new PunctualError('PAYLOAD_TOO_LARGE', `${AT}: ${detail}`, { errors: [{ pointer: AT, detail }] });
    }
    resolved.push(payload);
  }
  if (errors.length > 0) throw invalid(errors);
  return resolved;
}

function putInto(
  { step, payload, references }: OpenPayload,
  input: JsonOutline | null,
  { maxBytes, maxDepth }: InputLimits,
  errors: FieldError[],
): JsonText | null {
  const before = errors.length;
  const parts: string[] = [];
  let from = 0;
  const toInput = references.filter(isToInput);
  let { bytes } = payload;
  for (const { start, end } of toInput) bytes -= Buffer.byteLength(payload.text.slice(start, end));
  for (const reference of toInput) {
    const { path, start, end, place } = reference;
    const needed = `step "${step}" needs "${nameOf(reference)}"`;
    const value = input === null ? null : findPath(input, path, INPUT);
    if (input === null || value === null) {
      errors.push({ pointer: AT, detail: `is missing: ${needed}` });
      return null;
    }
    if (typeof value !== 'number') {
      const pointer = AT + path.slice(0, value.parts).map(pointerStep).join('');
      errors.push({ pointer, detail: `is missing: ${needed}, and ${value.missing}` });
      continue;
    }
    const text = input.text.slice(value, input.endOf(value));
    const pointer = AT + path.map(pointerStep).join('');
    if (place.depth + input.depthOf(value) > maxDepth) {
      errors.push({ pointer, detail: `${needed}, which then is nested deeper than ${maxDepth} levels` });
      continue;
    }
    bytes += Buffer.byteLength(text);
    // Before anything is built: many references may be to one large value.
    if (bytes > maxBytes) {
      errors.push({ pointer, detail: `${needed}, whose payload then is larger than ${maxBytes} bytes` });
      return null;
    }
    parts.push(payload.text.slice(from, start), text);
    from = end;
  }
  if (errors.length > before) return null;
  parts.push(payload.text.slice(from));
  return new JsonText(parts.join(''), bytes);
}
