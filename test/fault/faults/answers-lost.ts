import type { Fault } from '../fault.js';
import { meddleWithCalls } from '../meddle-with-calls.js';

/** The receiver does its work, and its answers never arrive. */
export const fault: Fault = {
  kind: 'answers-lost',
  scenario: 'http-mixed',
  lane: 'receiver',
  inject: (scene, random) => meddleWithCalls(scene, random, 'lost'),
};
