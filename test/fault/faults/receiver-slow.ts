import type { Fault } from '../fault.js';
import { meddleWithCalls } from '../meddle-with-calls.js';

/** The receiver answers later than any call waits. */
export const fault: Fault = {
  kind: 'receiver-slow',
  scenario: 'http-mixed',
  lane: 'receiver',
  inject: (scene, random) => meddleWithCalls(scene, random, 'slow'),
};
