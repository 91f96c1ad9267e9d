import { describe, expect, it, onTestFinished } from 'vitest';
import { Happening } from '../../test/happening.js';
import { serve } from '../../test/memory-node.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import type { PunctualError } from '../core/errors.js';
import { HeartbeatThread, type HeartbeatThreadParts } from './heartbeat-thread.js';
import type { AnsweredHeartbeat, HeartbeatSource } from './heartbeats.js';
import { monotonic } from './worker-clock.js';

/** A worker that only has heartbeats, with everything that is told to it. */
function heartbeating(url: string, workerId: string, change: Partial<HeartbeatThreadParts> = {}) {
  const answers = new Happening<AnsweredHeartbeat>();
  const failures = new Happening<PunctualError>();
  const warnings = new Happening<PunctualError>();
  const standIns = { started: new Happening(), stopped: new Happening() };
  const pace = { intervalMs: 20, limitMs: 1_000 };
  let number = 0;
  const source: HeartbeatSource = {
    pace: () => pace,
    nextRound: () => {
      number += 1;
      const running = [{ jobId: `round-${number}`, fence: 1 }];
      return { number, session: { workerId, shard: 0 }, heartbeat: { epoch: 1, running }, pace };
    },
    answered: answers.happen,
    failed: async (_workerId, error) => failures.happen(error),
  };
  const thread = new HeartbeatThread({
    nodes: { urls: [url], apiKey: 'the-key' },
    source,
    standIn: () => ({
      start: standIns.started.happen,
      wake: () => undefined,
      stop: async () => standIns.stopped.happen(),
    }),
    onSilentNode: () => undefined,
    onWarning: warnings.happen,
    ...change,
  });
  onTestFinished(() => thread.stop());
  return { thread, answers, failures, warnings, standIns, pace };
}

/** What the thread runs in place of its own program. */
const program = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

async function registered() {
  const scheduler = new MemoryScheduler();
  const node = await serve(scheduler);
  const { workerId } = await scheduler.register({
    name: 'w',
    queues: ['default'],
    slots: 1,
    targets: ['handler'],
    tasks: [],
    labels: {},
  });
  return { scheduler, node, workerId };
}

describe('heartbeats from a thread of their own', () => {
  it('say each time what the worker holds, and bring back the answers with their times', async () => {
    const { scheduler, node, workerId } = await registered();
    const { thread, answers } = heartbeating(node.url, workerId);
    const before = monotonic.now();
    thread.start();
    await answers.times(3);
    const listed = scheduler.heartbeats.map(({ running }) => running[0]!.jobId);
    expect(new Set(listed).size).toBe(listed.length);
    const [first] = answers.all;
    expect(first!.askedAt).toBeGreaterThan(before);
    expect(first!.answeredAt).toBeGreaterThan(first!.askedAt);
    expect(monotonic.now()).toBeGreaterThan(first!.answeredAt);
    expect(node.authorizations.every((each) => each === 'heartbeat Bearer the-key')).toBe(true);
  });

  it('are sent at once when there is news', async () => {
    const { scheduler, node, workerId } = await registered();
    const { thread, answers, pace } = heartbeating(node.url, workerId);
    pace.intervalMs = 60_000;
    thread.start();
    await answers.times(1);
    thread.wake();
    await answers.times(2);
    expect(scheduler.heartbeats).toHaveLength(2);
  });

  it('bring back errors with their code', async () => {
    const { node } = await registered();
    const { thread, failures } = heartbeating(node.url, 'somebody-else');
    thread.start();
    await failures.times(1);
    expect(failures.all[0]).toMatchObject({ code: 'WORKER_NOT_FOUND' });
  });

  it('come from the worker itself while the thread is lost, and the thread is started again', async () => {
    const { node, workerId } = await registered();
    const entry = program('throw new Error("out of luck")');
    const { thread, warnings, standIns } = heartbeating(node.url, workerId, { entry });
    thread.start();
    await warnings.times(2);
    expect(standIns.started.all.length).toBeGreaterThan(0);
    expect(warnings.all[0]!.message).toContain('out of luck');
    await thread.stop();
    expect(standIns.stopped.all.length).toBe(1);
  });

  it('leave the stand-in alone again once the thread has proved to work', async () => {
    const { node, workerId } = await registered();
    const answer = { epoch: 1, stop: [], drain: false, now: new Date().toISOString() };
    const message = { type: 'answered', round: 1, workerId, answer, askedAt: 0, answeredAt: 0 };
    const entry = program(`
      import { parentPort } from 'node:worker_threads';
      parentPort.postMessage(${JSON.stringify(message)});
      parentPort.once('message', () => process.exit());
    `);
    const { thread, standIns, answers } = heartbeating(node.url, workerId, { entry });
    thread.start();
    await answers.times(1);
    thread.wake();
    await standIns.started.times(1);
    await standIns.stopped.times(1);
  });

  it('get neither the environment nor the arguments of the program', async () => {
    process.env.PUNCTUAL_TEST_SECRET = 'secret';
    onTestFinished(() => {
      delete process.env.PUNCTUAL_TEST_SECRET;
    });
    const { node, workerId } = await registered();
    const entry = program(`throw new Error(JSON.stringify([process.env, process.argv]))`);
    const { thread, warnings } = heartbeating(node.url, workerId, { entry });
    thread.start();
    await warnings.times(1);
    expect(warnings.all[0]!.message).not.toMatch(/secret|the-key/);
  });
});
