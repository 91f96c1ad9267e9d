import type { Fault } from '../fault.js';
import { meddleWithCalls } from '../meddle-with-calls.js';

/** The receiver resets the connections of calls that it has begun. */
export const fault: Fault = {
  kind: 'receiver-resets',
  scenario: 'http-mixed',
  lane: 'receiver',
  inject: (scene, random) => meddleWithCalls(scene, random, 'reset'),
};
