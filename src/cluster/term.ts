import type { TermKey } from '../store/leader-statement.js';

/**
 * One term of this node. Every decision checks `trusted` first: it becomes false before the lease can expire in the
 * database, and stays false once the term is over.
 */
export class Term implements TermKey {
  private trustedUntil: number;
  private readonly listeners = new Set<(reason: string) => void>();
  private endReason: string | null = null;

  constructor(
    readonly shard: number,
    readonly epoch: number,
    readonly holder: string,
    /** On the monotonic clock: when the request that took the term was sent, plus the trusted share of the TTL. */
    trustedUntil: number,
  ) {
    this.trustedUntil = trustedUntil;
  }

  get over(): boolean {
    return this.endReason !== null;
  }

  /** Why the term ended; null while it lasts. */
  get reason(): string | null {
    return this.endReason;
  }

  get trusted(): boolean {
    return this.endReason === null && performance.now() < this.trustedUntil;
  }

  trustUntil(moment: number): void {
    this.trustedUntil = moment;
  }

  /** Calls back once when the term ends, or at once if it has ended; answers with a way to stop listening. */
  onOver(listener: (reason: string) => void): () => void {
    if (this.endReason !== null) listener(this.endReason);
    else this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Ends the term for this process; the first reason counts. */
  end(reason: string): void {
    if (this.endReason !== null) return;
    this.endReason = reason;
    const listeners = [...this.listeners];
    this.listeners.clear();
    for (const listener of listeners) listener(reason);
  }
}
