import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** Other nodes reach a node that never answers them. */
export const fault: Fault = {
  kind: 'peers-half-open',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) => breakLink(scene, random, 'peers', { kind: 'half-open' }),
};
