/**
 * The module that workers of a fault run load. Its handlers write every start and end to an append-only file
 * before anything else happens, so that what they did is known whatever becomes of their process.
 */

import { appendFileSync, existsSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { task } from '../../../dist/index.js';

const FILE = process.env.FAULT_EFFECTS;
const WORKER = process.env.FAULT_WORKER;
const KILL = process.env.FAULT_KILL;
const TENANT = process.env.FAULT_TENANT;

/** The machine's monotonic time in milliseconds, the clock of all observers. */
function monotonic() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

function record(kind, order, context, result = null) {
  const { jobId: job, fence } = context;
  const about = { kind, job, n: order.n, fence, worker: WORKER, tenant: TENANT };
  const effect = { ...about, at: monotonic(), result, from: order.from ?? null };
  appendFileSync(FILE, `${JSON.stringify(effect)}\n`);
  if (kind === 'end' && existsSync(KILL)) {
    rmSync(KILL);
    process.kill(process.pid, 'SIGKILL');
  }
}

/** Holds the thread, as a handler does that computes without a pause. */
function block(ms) {
  const until = monotonic() + ms;
  while (monotonic() < until);
}

export const effect = task('effect', async (order, context) => {
  record('start', order, context);
  if (order.blocking) block(order.workMs);
  else if (order.workMs > 0) {
    try {
      await sleep(order.workMs, undefined, { signal: context.signal });
    } catch (aborted) {
      record('end', order, context, 'stopped');
      throw aborted;
    }
  }
  if (context.attempt <= order.failures) {
    record('end', order, context, 'threw');
    throw new Error(`attempt ${context.attempt} of order ${order.n} was to fail`);
  }
  record('end', order, context, 'returned');
  return { n: order.n, fence: context.fence, ...(order.ballast && { ballast: order.ballast }) };
});
