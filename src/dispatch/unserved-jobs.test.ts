import { expect, it } from 'vitest';
import { SharesForTests } from '../../test/shares-for-tests.js';
import { TestClock } from '../../test/test-clock.js';
import { SILENT_LOG } from '../core/log.js';
import type { WorkerRegistration } from '../core/wire.js';
import { Backlog } from './backlog.js';
import type { Directory, NeedsInfo } from './directory.js';
import { Fitness } from './fitness.js';
import { UnservedJobs } from './unserved-jobs.js';
import { WorkerSession } from './worker-session.js';

const AFTER_MS = 30_000;

/** A leader as far as it knows jobs and workers: every needs is the handler `task-N` of the tenant of its jobs. */
function setUp() {
  const clock = new TestClock();
  const over = new SharesForTests(clock);
  const { shares } = over;
  const needs = new Map<number, NeedsInfo>();
  const directory = { needsOf: (id: number) => needs.get(id) } as unknown as Directory;
  const fitness = new Fitness(directory);
  const backlog = new Backlog({
    ...{ clock, shares, crowdedAt: 1_000_000, segmentLimit: 1_000 },
    isTaken: () => false,
  });
  const sessions = new Map<string, WorkerSession>();
  const [warned, told]: [string[], string[]] = [[], []];
  const log = {
    ...SILENT_LOG,
    warn: (_: unknown, message: string) => void warned.push(message),
    info: (_: unknown, message: string) => void told.push(message),
  };
  const leader = { clock, shares, fitness, directory, sessions, log, paused: false };
  const config = { unservedAfter: AFTER_MS } as never;
  const unserved = new UnservedJobs(Object.assign(leader, { config, isLoaded: true, isOver: false }));
  let jobs = 0;
  return {
    ...{ clock, over, shares, backlog, unserved, warned, told },
    pause: (paused: boolean) => {
      leader.paused = paused;
    },
    wait: (queue: number, task: number, tenant = 'default') => {
      const handler = `task-${task}`;
      needs.set(task, { id: task, tenant, target: 'handler', handler, labels: {} });
      over.queue(queue, { tenant });
      jobs += 1;
      const [id, runAt] = [`job-${jobs}`, clock.now()];
      const place = { queue, needs: task, lane: 0, key: null, rank: 5 };
      backlog.add({ ...place, id, tenant, runAt, fence: 1, startBefore: null, sizeKib: 0 });
      return id;
    },
    join: (queues: string[], tasks: number[]) => {
      const registration: WorkerRegistration = {
        ...{ name: 'w', queues, slots: 1, targets: ['handler'], labels: {} },
        tasks: tasks.map((task) => `task-${task}`),
      };
      const text = JSON.stringify(registration);
      const session = new WorkerSession(`w${sessions.size}`, 'default', text, 0, clock);
      sessions.set(session.id, session);
      shares.join(session);
      fitness.join(session);
      return session;
    },
    pass: async (ms = 0) => {
      clock.advance(ms);
      await unserved.runOnce();
      return warned.splice(0);
    },
    listed: async (tenant = 'default') =>
      (await unserved.list(tenant, null, 100)).rows.map(
        ({ view }) => `${view.queue} ${view.task} ${view.ready}`,
      ),
  };
}

it('jobs whose handler a worker has, but whose queue nobody serves, are warned about after a while', async () => {
  const leader = setUp();
  leader.join(['q2'], [1]);
  leader.wait(1, 1);
  leader.wait(1, 1);
  expect(await leader.pass()).toEqual([]);
  expect(await leader.pass(AFTER_MS - 1)).toEqual([]);
  expect(await leader.listed()).toEqual([]);
  expect(await leader.pass(1)).toEqual([
    'jobs are ready, but no live worker serves queue q1 with handler task-1',
  ]);
  expect(await leader.listed()).toEqual(['q1 task-1 2']);
  expect(await leader.listed('another')).toEqual([]);
});

it('a warning is repeated after ten minutes only, and ends with one line when a worker has come', async () => {
  const leader = setUp();
  leader.wait(1, 1);
  await leader.pass();
  expect(await leader.pass(AFTER_MS)).toHaveLength(1);
  expect(await leader.pass(599_999)).toEqual([]);
  expect(await leader.pass(1)).toHaveLength(1);
  leader.join(['q1'], [1]);
  expect(await leader.listed()).toEqual([]);
  for (let pass = 0; pass < 3; pass++) expect(await leader.pass(5_000)).toEqual([]);
  expect(leader.told).toEqual(['no jobs lack a worker any more: queue q1 with handler task-1']);
});

it('a worker that drains, lacks the handler or belongs to another tenant serves nothing', async () => {
  const leader = setUp();
  leader.join(['*'], [1]).draining = true;
  leader.join(['*'], [2]);
  leader.wait(1, 1);
  leader.wait(1, 2);
  leader.wait(2, 3, 'another');
  leader.join(['*'], [3]);
  await leader.pass();
  expect(await leader.pass(AFTER_MS)).toHaveLength(2);
  expect(await leader.listed()).toEqual(['q1 task-1 1']);
  expect(await leader.listed('another')).toEqual(['q2 task-3 1']);
});

it('jobs that are gone, not due or in a paused queue do not lack a worker', async () => {
  const leader = setUp();
  const gone = leader.wait(1, 1);
  leader.wait(2, 2);
  leader.over.queue(2, { paused: true });
  await leader.pass();
  leader.backlog.remove(gone);
  expect(await leader.pass(AFTER_MS)).toEqual([]);
  expect(await leader.listed()).toEqual([]);
});

it('while everything is paused, no job lacks a worker', async () => {
  const leader = setUp();
  leader.wait(1, 1);
  await leader.pass();
  await leader.pass(AFTER_MS);
  leader.pause(true);
  expect(await leader.listed()).toEqual([]);
  leader.pause(false);
  expect(await leader.listed()).toEqual(['q1 task-1 1']);
});

it('of very many kinds a tenant is told of some, and another tenant of its own all the same', async () => {
  const leader = setUp();
  for (let kind = 1; kind <= 300; kind++) leader.wait(kind, kind);
  leader.wait(1_000, 1_000, 'another');
  await leader.pass();
  const warned = await leader.pass(AFTER_MS);
  expect(warned).toHaveLength(12);
  expect(warned).toContain('jobs are ready, but no live worker serves queue q1000 with handler task-1000');
  expect(warned.at(-1)).toBe('there are more kinds of ready jobs that no live worker serves');
  expect(await leader.pass(5_000)).toEqual([]);
});

it('the list comes in pages that miss nothing and repeat nothing', async () => {
  const leader = setUp();
  for (let kind = 1; kind <= 25; kind++) leader.wait(1 + (kind % 5), kind);
  await leader.pass();
  await leader.pass(AFTER_MS);
  const seen: string[] = [];
  for (let after = null, more = true; more; ) {
    const page = await leader.unserved.list('default', after, 7);
    expect(page.rows.length).toBeLessThanOrEqual(7);
    seen.push(...page.rows.map(({ cursor }) => cursor.text));
    ({ more } = page);
    after = page.rows.at(-1)!.cursor;
  }
  expect(new Set(seen).size).toBe(25);
  expect(seen).toHaveLength(25);
});
