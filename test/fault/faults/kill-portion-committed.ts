import type { Fault } from '../fault.js';
import { killAtCommit } from '../kill-at-commit.js';

/** The leader dies when it has counted the ends of steps and before it hears of the steps that may run. */
export const fault: Fault = {
  kind: 'kill-portion-committed',
  scenario: 'workflow-mixed',
  lane: 'nodes',
  inject: (scene) => killAtCommit(scene, 'apply-portion'),
};
