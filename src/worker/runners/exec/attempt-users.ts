import { randomInt } from 'node:crypto';
import type { UserRange } from './machine.js';

/**
 * The users of attempts. Everything of a user is ended with its attempt, so no two attempts of a worker have the same one at the same
 * time. They are drawn by chance, because other workers of the machine draw from the same range.
 */
export class AttemptUsers {
  readonly #taken = new Set<number>();

  /** Null where attempts cannot have users of their own. */
  constructor(private readonly range: UserRange | null) {}

  /** A user that no attempt has; null where there are none. */
  take(): number | null {
    const { range } = this;
    if (range === null) return null;
    // A range has far more users than a worker has slots.
    for (;;) {
      const user = range.first + randomInt(range.count);
      if (this.#taken.has(user)) continue;
      this.#taken.add(user);
      return user;
    }
  }

  giveBack(user: number | null): void {
    if (user !== null) this.#taken.delete(user);
  }
}
