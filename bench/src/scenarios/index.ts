import type { Scenario } from '../scenario.js';
import { cron } from './cron.js';
import { events } from './events.js';
import { exec } from './exec.js';
import { failover } from './failover.js';
import { fair } from './fair.js';
import { future } from './future.js';
import { herd } from './herd.js';
import { http } from './http.js';
import { idle } from './idle.js';
import { latency } from './latency.js';
import { lists } from './lists.js';
import { pinned } from './pinned.js';
import { punctuality } from './punctuality.js';
import { sustained } from './sustained.js';
import { wire } from './wire.js';
import { workflow } from './workflow.js';

/** All scenarios, in the order of a full run. */
export const SCENARIOS: readonly Scenario[] = [
  sustained,
  pinned,
  wire,
  latency,
  punctuality,
  herd,
  future,
  cron,
  failover,
  idle,
  fair,
  events,
  lists,
  workflow,
  http,
  exec,
];
