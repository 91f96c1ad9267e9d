import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** A node's connections to the database end, and new ones are refused for a while. */
export const fault: Fault = {
  kind: 'postgres-cut',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) => breakLink(scene, random, 'database', { kind: 'cut' }),
};
