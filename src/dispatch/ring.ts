/** What is left of somebody's turn, in jobs; zero before it begins. A new turn is a new object. */
interface Turn {
  left: number;
}

/** Those who take turns, in order. */
export class Ring<T> {
  private readonly turns = new Map<T, Turn>();

  get size(): number {
    return this.turns.size;
  }

  /** Whoever comes waits behind all others; whoever goes takes nothing along. */
  add(member: T): void {
    if (!this.turns.has(member)) this.turns.set(member, { left: 0 });
  }

  delete(member: T): void {
    this.turns.delete(member);
  }

  /** A way round, from the one whose turn it is. */
  way(): Way<T> {
    return new Way(this.turns);
  }
}

/**
 * One way round a ring whose turns others use meanwhile. What it passes by is not met again, unless it has a new
 * turn at the end by then.
 */
export class Way<T> {
  private readonly iterator: IterableIterator<[T, Turn]>;
  private at: [T, Turn] | undefined;

  constructor(private readonly turns: Map<T, Turn>) {
    this.iterator = turns.entries();
    this.next();
  }

  get current(): T | undefined {
    // Its turn may be over, or it may have left.
    if (this.at && this.turns.get(this.at[0]) !== this.at[1]) return this.next();
    return this.at?.[0];
  }

  next(): T | undefined {
    const { done, value } = this.iterator.next();
    this.at = done ? undefined : value;
    return this.at?.[0];
  }

  /** The current one started a job, of as many as its weight in one turn; then the others come first. */
  spend(weight: number): void {
    if (!this.at) return;
    const [member, turn] = this.at;
    turn.left = Math.min(turn.left || weight, weight) - 1;
    if (turn.left > 0) return;
    this.turns.delete(member);
    this.turns.set(member, { left: 0 });
    this.next();
  }
}
