import type { Invariant } from '../checker.js';

/** A program ends with its worker, however that ends. */
export const invariant: Invariant = {
  name: 'no-orphans',
  rule: 'When all workers have ended, no program of theirs lives.',
  *check({ orphans }) {
    for (const orphan of orphans) yield { detail: `is still there: ${orphan}` };
  },
};
