import type { Invariant } from '../checker.js';

/** The load asks for nothing that is wrong, so no node has a reason to refuse it. */
export const invariant: Invariant = {
  name: 'good-requests',
  rule: 'A submission that keeps the rules is never refused, whatever is broken: it is taken, or its outcome is unknown.',
  *check({ submissions }) {
    for (const { refusal } of submissions)
      if (refusal !== undefined) yield { detail: `a good submission was refused: ${refusal}` };
  },
};
