import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { MemoryLog } from '../../test/memory-log.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import type { PunctualError } from '../core/errors.js';
import { type AnyTask, task } from '../core/task.js';
import { VERSION } from '../core/version.js';
import type { FencedJob } from '../core/wire.js';
import { HandlerRunner } from './runners/handler.js';
import type { Runner } from './runners/runner.js';
import type { WorkerOptions } from './worker-options.js';
import { WorkerRuntime } from './worker-runtime.js';

const started: WorkerRuntime[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.stop()));
});

function workerOf(scheduler: MemoryScheduler, tasks: AnyTask[], options: WorkerOptions = {}): WorkerRuntime {
  const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner(tasks)], options });
  started.push(worker);
  return worker;
}

/** A promise with its ends in hand. */
function gate() {
  let open!: () => void;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}

/** Has the leader name an attempt in its answers from now on. */
function stop(scheduler: MemoryScheduler, { jobId, fence }: FencedJob): void {
  scheduler.stop = [{ jobId, fence }];
}

const double = task('double', (input: number) => input * 2);
const untilAborted = task('until-aborted', (_: unknown, { signal }) => {
  return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
});
const deaf = task('deaf', () => new Promise(() => undefined));

describe('a worker', () => {
  it('says what it is when it registers, runs what it claims and reports the result', async () => {
    const scheduler = new MemoryScheduler();
    const before = Date.now();
    const job = scheduler.submit('double', 21);
    await workerOf(scheduler, [double], { name: 'w', slots: 3, labels: { region: 'eu' } }).start();
    const result = await scheduler.resultOf(job);
    expect(result).toMatchObject({ jobId: job.jobId, fence: 1, outcome: 'succeeded', result: 42 });
    expect(Date.parse(result.startedAt!)).toBeGreaterThanOrEqual(before - 50);
    expect(Date.parse(result.startedAt!)).toBeLessThanOrEqual(Date.now() + 50);
    expect(scheduler.registrations).toEqual([
      {
        name: 'w',
        queues: ['default'],
        slots: 3,
        targets: ['handler'],
        tasks: ['double'],
        labels: { region: 'eu' },
        version: VERSION,
      },
    ]);
  });

  it('warns if it has no tasks', async () => {
    const log = new MemoryLog();
    await workerOf(new MemoryScheduler(), [], { log }).start();
    expect(JSON.stringify(log.lines)).toContain('the worker has no tasks and will get no jobs');
  });

  it('serves the queues of its tasks, `default` only for a task without one, unless it is told which', async () => {
    const scheduler = new MemoryScheduler();
    const queued = (name: string, queue?: string) => task(name, { ...(queue && { queue }) }, () => null);
    const [calls, mails, bills] = [queued('call', 'calls'), queued('mail', 'mails'), queued('bill', 'calls')];
    const served = async (tasks: AnyTask[], options: WorkerOptions = {}) => {
      const worker = workerOf(scheduler, tasks, options);
      await worker.start();
      expect(scheduler.registrations.at(-1)?.queues).toEqual(worker.status().queues);
      return worker.status().queues;
    };
    expect(await served([calls, mails, bills])).toEqual(['calls', 'mails']);
    expect(await served([calls, queued('plain')])).toEqual(['calls', 'default']);
    expect(await served([calls], { queues: ['elsewhere'] })).toEqual(['elsewhere']);
    expect(await served([])).toEqual(['default']);
  });

  it('asks for as many jobs as it has free slots and never runs more', async () => {
    const scheduler = new MemoryScheduler();
    const doors = new Map<number, ReturnType<typeof gate>>();
    let most = 0;
    let running = 0;
    const hold = task('hold', async (input: number) => {
      const door = gate();
      doors.set(input, door);
      running += 1;
      most = Math.max(most, running);
      await door.passed;
      running -= 1;
    });
    const jobs = Array.from({ length: 9 }, (_, index) => scheduler.submit('hold', index));
    const startedJobs: string[] = [];
    const worker = workerOf(scheduler, [hold], {
      slots: 3,
      events: {
        onJobStarted: ({ jobId, payload }) => {
          startedJobs.push(jobId);
          setImmediate(() => doors.get(payload as number)!.open());
        },
      },
    });
    await worker.start();
    for (const job of jobs) await scheduler.resultOf(job);
    expect(most).toBe(3);
    expect(Math.max(...scheduler.claimSizes)).toBe(3);
    expect(startedJobs.sort()).toEqual(jobs.map((job) => job.jobId).sort());
  });

  it('starts a (job, fence) once, however often it is offered', async () => {
    const scheduler = new MemoryScheduler();
    const door = gate();
    let starts = 0;
    const once = task('once', async () => {
      starts += 1;
      await door.passed;
    });
    const job = scheduler.submit('once');
    await workerOf(scheduler, [once], { slots: 5 }).start();
    await scheduler.until(() => starts === 1);
    scheduler.offer(job);
    const other = scheduler.submit('once', null);
    await scheduler.until(() => starts === 2);
    door.open();
    await scheduler.resultOf(job);
    await scheduler.resultOf(other);
    expect(starts).toBe(2);
  });

  it('lists in heartbeats everything whose report is not answered yet', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('report', 3);
    const job = scheduler.submit('double', 1);
    const running = scheduler.submit('until-aborted');
    await workerOf(scheduler, [double, untilAborted]).start();
    const lists = (id: string) =>
      scheduler.heartbeats.at(-1)?.running.some(({ jobId }) => jobId === id) ?? false;
    await scheduler.until(() => lists(job.jobId) && lists(running.jobId));
    await scheduler.resultOf(job);
    await scheduler.until(() => !lists(job.jobId));
    expect(lists(running.jobId)).toBe(true);
  });

  it('repeats a report whose answer was lost until it is answered', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('report', 2, 'after');
    const job = scheduler.submit('double', 4);
    const worker = workerOf(scheduler, [double]);
    await worker.start();
    await scheduler.until(() => scheduler.reports.length === 3);
    expect(scheduler.reports.map((report) => report[0]!.jobId)).toEqual([job.jobId, job.jobId, job.jobId]);
    await scheduler.until(() => worker.status().unanswered === 0);
  });

  it('waits for a leader when there is none, but not when its key is refused', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('register', 2, 'before', 'NO_LEADER');
    await workerOf(scheduler, [double]).start();
    expect(scheduler.registrations).toHaveLength(1);
    scheduler.fail('register', 1, 'before', 'UNAUTHENTICATED');
    const refused = workerOf(scheduler, [double]);
    await expect(refused.start()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(refused.status().phase).toBe('ended');
  });

  it('registers again when it is not known any more, and still reports what it ran before', async () => {
    const scheduler = new MemoryScheduler();
    const door = gate();
    const slow = task('slow', () => door.passed.then(() => 'done'));
    const job = scheduler.submit('slow');
    const worker = workerOf(scheduler, [slow]);
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    const first = worker.status().workerId;
    scheduler.forgetWorkers();
    await scheduler.until(() => worker.status().workerId !== first);
    door.open();
    expect(await scheduler.resultOf(job)).toMatchObject({ outcome: 'succeeded', result: 'done' });
    expect(scheduler.registrations.map(({ replaces }) => replaces)).toEqual([undefined, first]);
  });

  it('drops a result that a newer attempt has made stale', async () => {
    const scheduler = new MemoryScheduler();
    const door = gate();
    const slow = task('slow', () => door.passed);
    const job = scheduler.submit('slow');
    const answers: string[] = [];
    const worker = workerOf(scheduler, [slow], {
      slots: 2,
      events: { onJobReported: ({ fence }, answer) => answers.push(`${fence} ${answer}`) },
    });
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    scheduler.offer({ ...job, attempt: 2, fence: 2 });
    await scheduler.until(() => worker.status().running === 2);
    door.open();
    await scheduler.until(() => worker.status().unanswered === 0);
    expect(answers.sort()).toEqual(['1 stale', '2 accepted']);
    // Answers name jobs only, so two attempts of one job never share a report.
    for (const report of scheduler.reports)
      expect(new Set(report.map((each) => each.jobId)).size).toBe(report.length);
  });

  it('drops answers of a replaced leader, and shows a new one its jobs at once', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.epoch = 5;
    scheduler.heartbeatInterval = '10s';
    const job = scheduler.submit('until-aborted');
    const worker = workerOf(scheduler, [untilAborted, double]);
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    scheduler.epoch = 6;
    const second = scheduler.submit('double', 1);
    await scheduler.resultOf(second);
    await scheduler.until(() => scheduler.heartbeats.at(-1)!.epoch === 6);
    expect(scheduler.heartbeats.at(-1)!.running).toContainEqual({ jobId: job.jobId, fence: 1 });
    scheduler.epoch = 5;
    const third = scheduler.submit('double', 2);
    await scheduler.until(() => scheduler.claimSizes.length > 3);
    expect(scheduler.accepted.has(third.jobId)).toBe(false);
    scheduler.epoch = 6;
    scheduler.offer(third);
    await scheduler.resultOf(third);
  });
});

describe('an attempt that is told to stop', () => {
  it('has its signal aborted and is reported as cancelled; another fence of the job is not touched', async () => {
    const scheduler = new MemoryScheduler();
    const job = scheduler.submit('until-aborted', null, { fence: 7 });
    const worker = workerOf(scheduler, [untilAborted]);
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    scheduler.stop = [{ jobId: job.jobId, fence: 6 }];
    const seen = scheduler.heartbeats.length;
    await scheduler.until(() => scheduler.heartbeats.length > seen + 2);
    expect(worker.status().running).toBe(1);
    scheduler.stop = [{ jobId: job.jobId, fence: 7 }];
    expect(await scheduler.resultOf(job)).toMatchObject({
      outcome: 'cancelled',
      error: { code: 'ATTEMPT_STOPPED' },
    });
  });

  it('hears of it in the answer to a claim, without waiting for a heartbeat', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.heartbeatInterval = '60s';
    const job = scheduler.submit('until-aborted');
    const worker = workerOf(scheduler, [untilAborted]);
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    scheduler.stopByClaim(job);
    expect(await scheduler.resultOf(job)).toMatchObject({ outcome: 'cancelled' });
  });

  it('is never started when it arrives after the order, and the leader is told so until it lets go', async () => {
    const scheduler = new MemoryScheduler();
    const late = { jobId: 'job-1', fence: 1 };
    const startedJobs: string[] = [];
    const worker = workerOf(scheduler, [double], {
      events: { onJobStarted: ({ jobId }) => startedJobs.push(jobId) },
    });
    await worker.start();
    stop(scheduler, late);
    const tells = () => scheduler.heartbeats.at(-1)?.refused?.some(({ jobId }) => jobId === late.jobId);
    await scheduler.until(() => tells() === true);
    const job = scheduler.submit('double', 1, late);
    const other = scheduler.submit('double', 2);
    await scheduler.resultOf(other);
    scheduler.stop = [];
    await scheduler.until(() => tells() === undefined);
    expect(job.jobId).toBe(late.jobId);
    expect(startedJobs).toEqual([other.jobId]);
  });

  it('goes on when the order only says that the leader had not heard of its arrival', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.heartbeatInterval = '60s';
    const worker = workerOf(scheduler, [untilAborted]);
    const heartbeat = scheduler.heartbeat.bind(scheduler);
    const job = { jobId: 'job-1', fence: 1 };
    // The attempt arrives while a heartbeat that does not list it is on its way.
    scheduler.heartbeat = async (...args) => {
      const answer = await heartbeat(...args);
      if (scheduler.heartbeats.length > 1) return answer;
      scheduler.submit('until-aborted', null, job);
      await scheduler.until(() => worker.status().running === 1);
      return { ...answer, stop: [job] };
    };
    await worker.start();
    await scheduler.until(() => scheduler.heartbeats.length > 1);
    expect(worker.status().running).toBe(1);
    expect(scheduler.heartbeats.at(-1)!.running).toEqual([job]);
  });

  it('is reported as succeeded if it finishes its work nevertheless', async () => {
    const scheduler = new MemoryScheduler();
    const finishing = task('finishing', (_: unknown, { signal }) => {
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('done')));
    });
    const job = scheduler.submit('finishing');
    await workerOf(scheduler, [finishing], { events: { onJobStarted: () => stop(scheduler, job) } }).start();
    expect(await scheduler.resultOf(job)).toMatchObject({ outcome: 'succeeded', result: 'done' });
  });

  it('is given up after the grace and its slot goes to the next job', async () => {
    const scheduler = new MemoryScheduler();
    const job = scheduler.submit('deaf');
    const next = scheduler.submit('double', 3);
    const events = { onJobStarted: () => stop(scheduler, job) };
    await workerOf(scheduler, [deaf, double], { slots: 1, stopGraceMs: 30, events }).start();
    expect(await scheduler.resultOf(next)).toMatchObject({ result: 6 });
    expect(scheduler.accepted.get(job.jobId)).toMatchObject({ outcome: 'cancelled' });
  });

  it.each([
    { ended: 'after the grace', isStopped: true, end: { outcome: 'cancelled' } },
    { ended: 'by itself', isStopped: false, end: { result: 'at once' } },
  ])('keeps its slot while something is left of it when it has ended $ended', async ({ isStopped, end }) => {
    const scheduler = new MemoryScheduler();
    const job = scheduler.submit('leaving');
    const next = scheduler.submit('leaving', 3);
    let go: () => void;
    const gone = new Promise<void>((resolve) => {
      go = resolve;
    });
    const runner: Runner = {
      ...{ target: 'handler', runsUserCode: false, tasks: ['leaving'], queues: ['default'] },
      run({ payload }, _, stop) {
        if (payload === 3) return 'after it';
        stop!.gone = gone;
        return isStopped ? new Promise(() => undefined) : 'at once';
      },
    };
    const events = isStopped ? { onJobStarted: () => stop(scheduler, job) } : {};
    const worker = new WorkerRuntime({
      ...{ gateway: scheduler, runners: [runner] },
      options: { slots: 1, stopGraceMs: 10, log: false, events },
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    expect(await scheduler.resultOf(job)).toMatchObject(end);
    expect(worker.status().running).toBe(1);
    expect(scheduler.accepted.has(next.jobId)).toBe(false);
    go!();
    expect(await scheduler.resultOf(next)).toMatchObject({ result: 'after it' });
  });

  it('times out after its own timeout, whether it heeds the signal or not', async () => {
    const scheduler = new MemoryScheduler();
    const heeding = scheduler.submit('until-aborted', null, { timeoutMs: 20 });
    const ignoring = scheduler.submit('deaf', null, { timeoutMs: 20 });
    const fine = scheduler.submit('double', 1, { timeoutMs: 2 ** 40 });
    await workerOf(scheduler, [untilAborted, deaf, double], { stopGraceMs: 30 }).start();
    expect(await scheduler.resultOf(heeding)).toMatchObject({
      outcome: 'timed-out',
      error: { code: 'TIMED_OUT' },
    });
    expect(await scheduler.resultOf(ignoring)).toMatchObject({ outcome: 'timed-out' });
    expect(await scheduler.resultOf(fine)).toMatchObject({ outcome: 'succeeded' });
  });

  it('adds steps again and again while no node can, and is told so when that is refused as stale', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('addSteps', 2, 'after', 'NO_LEADER');
    const spawning = task('spawning', async (_: unknown, { spawn }) => {
      await spawn((w) => w.run(double, 1, { name: 'b' }), { join: false });
      scheduler.fail('addSteps', 1, 'before', 'STALE_FENCE');
      await spawn((w) => w.wait('1s', { name: 'c' }));
    });
    const job = scheduler.submit('spawning', null, { workflow: 'w' });
    await workerOf(scheduler, [spawning]).start();
    expect(await scheduler.resultOf(job)).toMatchObject({
      outcome: 'cancelled',
      error: { code: 'STALE_FENCE' },
    });
    const addition = {
      by: { jobId: job.jobId, fence: 1 },
      jobs: { b: { task: 'double', payload: 1 } },
      join: false,
    };
    expect(scheduler.additions).toEqual([addition, addition, addition]);
  });

  it('is told so when its progress is refused as stale', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('progress', 1, 'before', 'STALE_FENCE');
    const telling = task('telling', async (_: unknown, { progress, signal }) => {
      await progress(0.5);
      signal.throwIfAborted();
    });
    const job = scheduler.submit('telling');
    await workerOf(scheduler, [telling]).start();
    expect(await scheduler.resultOf(job)).toMatchObject({
      outcome: 'cancelled',
      error: { code: 'STALE_FENCE' },
    });
  });
});

describe('the end of a worker', () => {
  it('drains: takes nothing more, finishes, reports, and only then leaves', async () => {
    const scheduler = new MemoryScheduler();
    const door = gate();
    const slow = task('slow', () => door.passed.then(() => 1));
    const job = scheduler.submit('slow');
    const worker = workerOf(scheduler, [slow], { slots: 1 });
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    const drained = worker.drain();
    const late = scheduler.submit('slow');
    const seen = scheduler.heartbeats.length;
    await scheduler.until(() => scheduler.heartbeats.length > seen + 1);
    expect(scheduler.left).toEqual([]);
    door.open();
    await drained;
    expect(scheduler.accepted.get(job.jobId)).toMatchObject({ outcome: 'succeeded' });
    expect(scheduler.accepted.has(late.jobId)).toBe(false);
    expect(scheduler.left).toEqual(['worker-1']);
    expect(scheduler.calls.lastIndexOf('report')).toBeLessThan(scheduler.calls.indexOf('leave'));
  });

  it('stops at once when its drain takes longer than it may', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.submit('deaf');
    const worker = workerOf(scheduler, [deaf], { drainTimeoutMs: 50, guardProcess: false });
    const end = worker.run();
    await scheduler.until(() => worker.status().running === 1);
    await worker.drain();
    expect(await end).toBe('stopped');
    // What it had begun is not done, and leaving would say that it is.
    expect(scheduler.left).toEqual([]);
  });

  it('runs what its last claim still brings when it is drained in the middle of it', async () => {
    const scheduler = new MemoryScheduler();
    const worker = workerOf(scheduler, [double]);
    await worker.start();
    await scheduler.until(() => scheduler.claimSizes.length === 1);
    const drained = worker.drain();
    const job = scheduler.submit('double', 8);
    await drained;
    expect(scheduler.accepted.get(job.jobId)).toMatchObject({ result: 16 });
    expect(scheduler.claimSizes).toHaveLength(1);
  });

  it('drains when the leader orders it', async () => {
    const scheduler = new MemoryScheduler();
    const worker = workerOf(scheduler, [double], { guardProcess: false });
    const end = worker.run();
    await scheduler.until(() => scheduler.heartbeats.length > 0);
    scheduler.drain = true;
    expect(await end).toBe('drained');
    expect(scheduler.left).toEqual(['worker-1']);
  });

  it('stops at once: aborts its handlers, reports nothing further and leaves the rest to its silence', async () => {
    const scheduler = new MemoryScheduler();
    let reason: unknown;
    const watching = task('watching', async (_: unknown, { signal }) => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      reason = signal.reason;
    });
    scheduler.submit('watching');
    const worker = workerOf(scheduler, [watching]);
    await worker.start();
    await scheduler.until(() => worker.status().running === 1);
    await worker.stop();
    await delay(20);
    expect((reason as PunctualError).code).toBe('ATTEMPT_STOPPED');
    expect(scheduler.reports).toEqual([]);
    expect(scheduler.left).toEqual([]);
  });

  it('can be drained while no leader answers its registration', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('register', 1_000, 'before', 'NO_LEADER');
    const worker = workerOf(scheduler, [double], { guardProcess: false });
    const end = worker.run();
    await scheduler.until(() => scheduler.calls.length > 1);
    await worker.drain();
    expect(await end).toBe('drained');
  });
});
