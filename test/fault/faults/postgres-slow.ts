import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** Everything between a node and the database takes a while longer. */
export const fault: Fault = {
  kind: 'postgres-slow',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) =>
    breakLink(scene, random, 'database', { kind: 'slow', delayMs: random.between(20, 120) }),
};
