import type { PunctualError } from '../core/errors.js';

/** How many requests this node has refused because of a quota or a rate, since its start; the names are few and fixed. */
export class Refusals {
  readonly counts = new Map<string, number>();

  /** Counts an error, if it is about a quota. */
  note({ quota, code }: PunctualError): void {
    const name = quota?.name ?? (code === 'RATE_LIMITED' ? 'keyRate' : undefined);
    if (name !== undefined) this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}
