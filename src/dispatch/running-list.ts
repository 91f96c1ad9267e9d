import type { Running } from './running.js';

/** The jobs that one worker runs: an intrusive linked list, with O(1) for adding and removing. */
export class RunningList {
  private first: Running | null = null;
  private count = 0;

  get size(): number {
    return this.count;
  }

  add(running: Running): void {
    running.list = this;
    running.next = this.first;
    if (this.first) this.first.previous = running;
    this.first = running;
    this.count += 1;
  }

  /** Removes a job, if it is in this list. */
  remove(running: Running): void {
    if (running.list !== this) return;
    const { previous, next } = running;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    running.list = null;
    running.previous = null;
    running.next = null;
    this.count -= 1;
  }

  /** A copy of the list, newest first. */
  all(): Running[] {
    return this.filter(() => true);
  }

  /** The jobs for which the predicate holds, newest first. */
  filter(holds: (running: Running) => boolean): Running[] {
    const found: Running[] = [];
    for (let running = this.first; running; running = running.next) if (holds(running)) found.push(running);
    return found;
  }
}
