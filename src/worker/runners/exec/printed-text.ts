import type { Redaction } from '../http/redaction.js';
import type { EndedMessage } from './host/messages.js';

/**
 * What people see of what a program prints, without its secrets. They are looked for before anything is cut, and over all cuts that
 * were made before: a part of a secret would not be found, and is one all the same.
 */

/** The characters of both streams that are shown of their ends. */
const SHOWN = 4 * 1024;
/** For secrets that are longer than this, a part may be shown where a stream was cut. */
const MOST_MARGIN = 64 * 1024;
/** The most characters that are shown as one line, fewer than a log takes: more would be left out there. */
const LONGEST_SHOWN = 8 * 1024;

/** The bytes of the end of a stream that have to be kept, so that the beginning of it can be left out. */
export function tailBytesFor(redaction: Redaction): number {
  return SHOWN + marginOf(redaction);
}

/** The end of a program with what may be shown of its streams. */
export function redactedEnd(end: EndedMessage, redaction: Redaction): EndedMessage {
  const { stdoutTail, stderrTail, isTailCut } = end;
  return {
    ...end,
    stdoutTail: shownTail(stdoutTail, isTailCut.stdout, redaction),
    stderrTail: shownTail(stderrTail, isTailCut.stderr, redaction),
  };
}

/** The end of a stream. Where it was cut, it may begin with the end of a secret. */
function shownTail(tail: string, isCut: boolean, redaction: Redaction): string {
  const text = redaction.text(tail);
  if (!isCut) return text.slice(-SHOWN);
  const margin = marginOf(redaction);
  // Names may be longer than the secrets whose places they take, and push the rest of another one out of the margin.
  const redacted = redaction.text(tail.slice(0, margin)).length;
  return text.slice(Math.max(margin, redacted)).slice(-SHOWN);
}

function marginOf(redaction: Redaction): number {
  return Math.min(redaction.longest, MOST_MARGIN);
}

/** The lines of one stream. A line that is too long comes in parts, and a secret may be in two of them. */
export class PrintedLines {
  /** The end of the part before, without whole secrets: the next part may go on with one. */
  #held = '';

  constructor(private readonly redaction: Redaction) {}

  /** The next line or part as it may be shown, in pieces if it is long; empty if nothing of it may be yet. */
  add(text: string, continues: boolean): string[] {
    const redacted = this.redaction.text(this.#held + text);
    const margin = continues ? marginOf(this.redaction) : 0;
    const shown = betweenCharacters(redacted, Math.max(0, redacted.length - margin));
    this.#held = redacted.slice(shown);
    return continues && shown === 0 ? [] : piecesOf(redacted.slice(0, shown));
  }

  /** What is left of a line without an end. Not to be called if what follows was left out. */
  end(): string[] {
    return this.#held === '' ? [] : piecesOf(this.#held);
  }
}

function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (text.length - from > LONGEST_SHOWN) {
    const to = betweenCharacters(text, from + LONGEST_SHOWN);
    pieces.push(text.slice(from, to));
    from = to;
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** The place itself, or the one before it if it is within a character that takes two. */
function betweenCharacters(text: string, at: number): number {
  const isWithin = at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff;
  return isWithin ? at - 1 : at;
}
