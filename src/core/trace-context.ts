/**
 * W3C Trace Context: the header `traceparent` names a trace and the span of whoever makes a request. What is malformed is
 * ignored, as the standard demands.
 */

/** The header of a request that is part of a trace. */
export const TRACEPARENT = 'traceparent';

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** The value of the header in the form of version 00; null if there is none or it is malformed. */
export function readTraceparent(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const [, version, trace, span, flags, rest] = FORM.exec(value) ?? [];
  if (version === undefined || version === 'ff' || trace === NO_TRACE || span === NO_SPAN) return null;
  // Later versions may add fields; what is known of them has the same meaning.
  if (version === '00' && rest !== undefined) return null;
  return `00-${trace}-${span}-${flags}`;
}
