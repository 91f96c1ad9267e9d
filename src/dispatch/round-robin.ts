/** How many jobs a member may still start before it goes to the end; zero until it starts its first. */
interface Quantum {
  left: number;
}

/**
 * Weighted round robin. The quantum of a member is its weight, in jobs. A `Map` keeps the order: a member that joins,
 * or has used up its quantum, goes to the end with a new one; leaving forfeits the rest.
 */
export class RoundRobin<T> {
  private readonly members = new Map<T, Quantum>();

  get size(): number {
    return this.members.size;
  }

  /** Adds a member at the end. */
  add(member: T): void {
    if (!this.members.has(member)) this.members.set(member, { left: 0 });
  }

  delete(member: T): void {
    this.members.delete(member);
  }

  /** A cursor that begins at the first member. */
  cursor(): RoundRobinCursor<T> {
    return new RoundRobinCursor(this.members);
  }
}

/**
 * One pass over the members of a round robin, while other passes use the same quanta. A member that was passed over is
 * not visited again, unless it has received a new quantum at the end meanwhile.
 */
export class RoundRobinCursor<T> {
  private readonly iterator: IterableIterator<[T, Quantum]>;
  private at: [T, Quantum] | undefined;

  constructor(private readonly members: Map<T, Quantum>) {
    this.iterator = members.entries();
    this.next();
  }

  get current(): T | undefined {
    // The member may have left, or another pass may have used up its quantum.
    if (this.at && this.members.get(this.at[0]) !== this.at[1]) return this.next();
    return this.at?.[0];
  }

  next(): T | undefined {
    const { done, value } = this.iterator.next();
    this.at = done ? undefined : value;
    return this.at?.[0];
  }

  /** Counts a job that the current member started; `weight` is what a full quantum holds. */
  spend(weight: number): void {
    if (!this.at) return;
    const [member, quantum] = this.at;
    quantum.left = Math.min(quantum.left || weight, weight) - 1;
    // A single member is at the end already.
    if (quantum.left > 0 || this.members.size === 1) return;
    this.members.delete(member);
    this.members.set(member, { left: 0 });
    this.next();
  }
}
