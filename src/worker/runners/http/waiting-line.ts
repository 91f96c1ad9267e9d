/** Its place among those of its kind that wait. */
export abstract class InLine<W extends InLine<W>> {
  line: WaitingLine<W> | null = null;
  before: W | null = null;
  behind: W | null = null;
}

/**
 * Who waits, in the order of arrival; anyone may leave. It is a linked list through those who wait: thousands enter and leave it
 * every second, and a Set would be copied again and again as it grows and shrinks.
 */
export class WaitingLine<W extends InLine<W>> {
  #first: W | null = null;
  #last: W | null = null;

  join(who: W): void {
    who.line = this;
    who.before = this.#last;
    if (this.#last) this.#last.behind = who;
    else this.#first = who;
    this.#last = who;
  }

  /** False for who does not wait here. */
  leave(who: W): boolean {
    if (who.line !== this) return false;
    const { before, behind } = who;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    who.line = null;
    who.before = null;
    who.behind = null;
    return true;
  }

  /** Who has waited longest, and leaves the line with that. */
  next(): W | null {
    const first = this.#first;
    if (first) this.leave(first);
    return first;
  }
}
