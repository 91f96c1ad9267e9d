import type { Scenario } from '../scenario.js';
import { latency } from './latency.js';
import { pinned } from './pinned.js';
import { sustained } from './sustained.js';
import { wire } from './wire.js';

/** All scenarios, in the order of a full run. */
export const SCENARIOS: readonly Scenario[] = [sustained, pinned, wire, latency];
