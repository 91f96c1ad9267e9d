import type { Invariant } from '../checker.js';

/** What a node may use here; a load of small jobs takes a quarter of it. */
const MAX_MEGABYTES = 800;

/** However large the jobs are that clients send, a node holds only so many of them at a time. */
export const invariant: Invariant = {
  name: 'memory-bounded',
  rule: `No node uses more than ${MAX_MEGABYTES} megabytes of memory.`,
  *check({ memory }) {
    for (const { member, megabytes } of memory) {
      if (megabytes > MAX_MEGABYTES) yield { detail: `${member} used ${megabytes} megabytes` };
    }
  },
};
