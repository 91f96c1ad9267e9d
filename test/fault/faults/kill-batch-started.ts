import type { Fault } from '../fault.js';
import { killAtCommit } from '../kill-at-commit.js';

/** The leader dies when a whole batch is claimed and before any of its members is handed over. */
export const fault: Fault = {
  kind: 'kill-batch-started',
  scenario: 'batch-mixed',
  lane: 'nodes',
  inject: (scene) => killAtCommit(scene, 'start-batch'),
};
