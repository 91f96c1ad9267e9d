import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** A node's statements reach the database, and no answer comes back until the link heals. */
export const fault: Fault = {
  kind: 'postgres-deaf',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) => breakLink(scene, random, 'database', { kind: 'deaf' }),
};
