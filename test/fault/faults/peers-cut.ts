import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** Other nodes cannot reach a node, which reaches the database all the same. */
export const fault: Fault = {
  kind: 'peers-cut',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) => breakLink(scene, random, 'peers', { kind: 'cut' }),
};
