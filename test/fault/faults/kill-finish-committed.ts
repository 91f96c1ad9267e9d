import type { Fault } from '../fault.js';
import { killAtCommit } from '../kill-at-commit.js';

/** The leader dies when the end of jobs is committed and before their worker is told. */
export const fault: Fault = {
  kind: 'kill-finish-committed',
  scenario: 'kill-points',
  lane: 'nodes',
  inject: (scene) => killAtCommit(scene, 'finish-jobs'),
};
