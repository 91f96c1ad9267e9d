import type { Invariant } from '../checker.js';

/** Faults end processes; nothing else may. */
export const invariant: Invariant = {
  name: 'nobody-dies',
  rule: 'A node, a worker or the database ends only when it is told to.',
  *check({ deaths }) {
    for (const { member, detail } of deaths) yield { detail: `${member} ended by itself: ${detail}` };
  },
};
