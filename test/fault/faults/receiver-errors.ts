import type { Fault } from '../fault.js';
import { meddleWithCalls } from '../meddle-with-calls.js';

/** The receiver answers every call with 503. */
export const fault: Fault = {
  kind: 'receiver-errors',
  scenario: 'http-mixed',
  lane: 'receiver',
  inject: (scene, random) => meddleWithCalls(scene, random, 'error'),
};
