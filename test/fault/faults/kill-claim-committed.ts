import type { Fault } from '../fault.js';
import { killAtCommit } from '../kill-at-commit.js';

/** The leader dies when its claim is committed and before it knows: nothing was handed over. */
export const fault: Fault = {
  kind: 'kill-claim-committed',
  scenario: 'kill-points',
  lane: 'nodes',
  inject: (scene) => killAtCommit(scene, 'claim-jobs'),
};
