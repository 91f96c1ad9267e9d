import { breakLink } from '../break-link.js';
import type { Fault } from '../fault.js';

/** A node hears the database but does not get through to it; its statements arrive late. */
export const fault: Fault = {
  kind: 'postgres-mute',
  scenario: 'partition',
  lane: 'links',
  inject: (scene, random) => breakLink(scene, random, 'database', { kind: 'mute' }),
};
