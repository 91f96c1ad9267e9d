import { isUtf8 } from 'node:buffer';
import type { CallResult } from '../../../core/call-result.js';
import type { CallAnswer, ReadBody } from './answer-reader.js';
import type { Redaction } from './redaction.js';

/** The headers of an answer that are kept. */
const KEPT_HEADERS = ['content-type', 'etag', 'location', 'x-request-id'] as const;
const LONGEST_HEADER = 512;
/** What the result of a call takes beside its body, at most. */
const ENVELOPE_BYTES = 4 * 1_024;

/** The value of a header; of several values, the first. */
export function headerOf({ headers }: Pick<CallAnswer, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** The most bytes of a body that are read for a result. */
export function mostBodyBytes(maxResultBytes: number): number {
  return Math.max(0, maxResultBytes - ENVELOPE_BYTES);
}

/** The result that is kept of an answer; never larger than `maxResultBytes` as JSON. */
export function resultOfAnswer(answer: CallAnswer, redaction: Redaction, maxResultBytes: number): CallResult {
  const headers: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = headerOf(answer, name);
    if (value !== undefined) headers[name] = redaction.text(value).slice(0, LONGEST_HEADER);
  }
  const kept = keptBody(answer, redaction, mostBodyBytes(maxResultBytes));
  return { status: answer.statusCode, headers, ...kept };
}

function keptBody(
  answer: CallAnswer,
  redaction: Redaction,
  maxBytes: number,
): Pick<CallResult, 'body' | 'cut' | 'omitted'> {
  const { bytes, isCut } = answer.body;
  if (bytes.length === 0 && !isCut) return { body: null };
  const type = headerOf(answer, 'content-type') ?? '';
  const isPlain = /^(identity)?$/i.test(headerOf(answer, 'content-encoding') ?? '');
  const text = isPlain ? textOf(bytes, isCut) : null;
  const isJson = /^application\/([\w.+-]+\+)?json\b/i.test(type);
  const isText =
    type === '' || isJson || /^text\/|^application\/(xml|x-www-form-urlencoded)\b|\+xml\b/i.test(type);
  if (text === null || !isText) {
    const length = headerOf(answer, 'content-length');
    const size = !isCut ? bytes.length : length === undefined ? null : Number(length);
    const encoding = isPlain ? '' : ` (${headerOf(answer, 'content-encoding')})`;
    const said = redaction.text(`${type}${encoding}`).slice(0, LONGEST_HEADER);
    return { body: null, omitted: { type: said, bytes: size } };
  }
  if (isJson && !isCut) {
    const json = jsonOf(text, redaction, maxBytes);
    if (json) return json;
  }
  const redacted = redaction.text(text);
  // A part of a secret may stand at the end of what was cut.
  const safe = isCut ? redacted.slice(0, Math.max(0, redacted.length - redaction.longest)) : redacted;
  const fitting = longestFitting(safe, maxBytes);
  return { body: fitting, ...((isCut || fitting !== safe) && { cut: true }) };
}

/** By how much JSON may grow when it is parsed and written again: `1e20` has 21 digits. */
const MOST_GROWTH = 6;

function jsonOf(text: string, redaction: Redaction, maxBytes: number): { readonly body: unknown } | null {
  try {
    const parsed: unknown = JSON.parse(text);
    const isRedacted = redaction.isNeeded(text);
    const body = isRedacted ? redaction.json(parsed) : parsed;
    if (!isRedacted && text.length * MOST_GROWTH <= maxBytes) return { body };
    return Buffer.byteLength(JSON.stringify(body)) <= maxBytes ? { body } : null;
  } catch {
    return null;
  }
}

/** Null if the bytes are no UTF-8. A character that was cut at the end is left out. */
function textOf(bytes: Buffer, isCut: boolean): string | null {
  // A decoder costs more than all else that is done with a small answer, and is needed only for what was cut.
  if (!isCut && !startsWithMark(bytes)) return isUtf8(bytes) ? bytes.toString('utf8') : null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}

/** Whether a byte order mark comes first, which is no part of the text. */
function startsWithMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/** The longest beginning that fits as JSON, or nearly so. */
function longestFitting(text: string, maxBytes: number): string {
  let kept = text;
  for (;;) {
    const bytes = Buffer.byteLength(JSON.stringify(kept));
    if (bytes <= maxBytes || kept === '') return kept;
    kept = kept.slice(0, Math.floor(kept.length * Math.min(0.99, maxBytes / bytes)));
  }
}

/** The beginning of the body of an answer that was not expected, for an error. */
export function excerptOf({ bytes, isCut }: ReadBody, redaction: Redaction, most: number): string {
  const redacted = redaction.text(bytes.toString('utf8'));
  const whole = isCut ? redacted.slice(0, Math.max(0, redacted.length - redaction.longest)) : redacted;
  const text = whole.replace(/\s+/g, ' ').trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what a receiver sends may hold them.
  const printable = text.replace(/[\u0000-\u001f\u007f\ufffd]/g, '');
  return printable.length > most ? `${printable.slice(0, most)}…` : printable;
}
