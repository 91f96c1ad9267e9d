import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** Nothing passes between a node and the database, and neither is told; what was held back arrives late. */
export const fault: Fault = {
  kind: 'postgres-half-open',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) => breakLink(scene, random, 'database', { kind: 'half-open' }),
};
