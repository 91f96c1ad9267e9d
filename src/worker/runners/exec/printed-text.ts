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
  return (isCut ? text.slice(marginOf(redaction)) : text).slice(-SHOWN);
}

function marginOf(redaction: Redaction): number {
  return Math.min(redaction.longest, MOST_MARGIN);
}

/** The lines of one stream. A line that is too long comes in parts, and a secret may be in two of them. */
export class PrintedLines {
  /** The end of the part before, without whole secrets: the next part may go on with one. */
  #held = '';

  constructor(private readonly redaction: Redaction) {}

  /** The next line or part as it may be shown; null if nothing of it may be yet. */
  add(text: string, continues: boolean): string | null {
    const redacted = this.redaction.text(this.#held + text);
    const margin = continues ? marginOf(this.redaction) : 0;
    const shown = Math.max(0, redacted.length - margin);
    this.#held = redacted.slice(shown);
    return continues && shown === 0 ? null : redacted.slice(0, shown);
  }

  /** What is left of a line without an end; null for nothing. Not to be called if what follows was left out. */
  end(): string | null {
    return this.#held === '' ? null : this.#held;
  }
}
