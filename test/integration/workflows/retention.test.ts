import { expect, it, onTestFinished } from 'vitest';
import { TimerClock } from '../../../src/core/clock.js';
import type { Job } from '../../../src/core/job.js';
import { task } from '../../../src/core/task.js';
import type { Page } from '../../../src/core/wire.js';
import { partitionName } from '../../../src/store/partitions.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { submitBatch } from '../batches/batch-user.js';
import { statesOf, submitWorkflow, workflowEnd } from './workflow-tester.js';

const DAY_MS = 86_400_000;

/** Upkeep begins some seconds after a takeover, and a day that was being read is tried again a minute later. */
async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  await expect.poll(condition, { timeout: 90_000, interval: 20 }).toBe(true);
}

/** How far time has been moved, for all tests together: ids of one process never go back. */
let ahead = 0;

/** A shard whose nodes come and go, days apart; history is kept for 30 days. */
class Weeks {
  node!: TestNode;
  private constructor(readonly database: TestDatabase) {}

  static async begin(): Promise<Weeks> {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const weeks = new Weeks(database);
    await weeks.start();
    onTestFinished(() => weeks.node.stop(), 30_000);
    return weeks;
  }

  private async start(): Promise<void> {
    const clock = new TimerClock(() => Date.now() + ahead);
    const { database } = this;
    this.node = await TestNode.start({ database, clock, settings: { historyRetention: '30d' } });
    await until(() => this.node.node.leads());
    const today = `punctual.${partitionName('job_history', this.now)}`;
    await until(async () => (await this.rows('SELECT to_regclass($1) AS day', [today]))[0]!.day !== null);
  }

  get now(): number {
    return Date.now() + ahead;
  }

  /** Lets days pass without a node. */
  async pass(days: number): Promise<void> {
    await this.node.stop();
    ahead += days * DAY_MS;
    await this.start();
  }

  /** The worker of the current node. */
  work(): Promise<unknown> {
    const echo = task('echo', { retry: { maxAttempts: 1 } }, async (input: { fails?: boolean }) => {
      if (input?.fails) throw new Error('it fails');
      return input;
    });
    return this.node.work([echo], { slots: 4 });
  }

  async rows(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return (await withClient(this.database.url, (client) => client.query(sql, values))).rows;
  }

  /** Waits until the day that holds a moment has left history. */
  async untilRemoved(moment: number): Promise<void> {
    const name = `punctual.${partitionName('job_history', moment)}`;
    await until(async () => (await this.rows('SELECT to_regclass($1) AS day', [name]))[0]!.day === null);
  }

  /** How often the job is in history, and among what was kept of it. */
  async copies(id: string): Promise<readonly [number, number]> {
    const [row] = await this.rows(
      `SELECT (SELECT count(*)::int FROM punctual.job_history WHERE id = $1) AS days,
         (SELECT count(*)::int FROM punctual.job_history_kept WHERE id = $1) AS kept`,
      [id],
    );
    return [row!.days as number, row!.kept as number];
  }
}

const echo = (payload: unknown, ...after: string[]) => ({
  task: 'echo',
  payload,
  after,
  retry: { maxAttempts: 1 },
});

it('a workflow that waits for weeks keeps the result of its first step, and when it is old all of it leaves together', async () => {
  const weeks = await Weeks.begin();
  await weeks.work();
  const began = weeks.now;
  const { id, jobs } = await submitWorkflow(weeks.node, {
    jobs: {
      a: echo({ n: 7 }),
      paid: { wait: { event: 'paid' }, after: ['a'] },
      b: echo({ first: { $from: 'a.result.n' } }, 'paid'),
    } as never,
  });
  const plain = await weeks.node.submit({ task: 'echo', payload: 1 });
  await Promise.all([weeks.node.ended(jobs.a!.id), weeks.node.ended(plain.id)]);

  await weeks.pass(45);
  await weeks.untilRemoved(began);
  expect(await weeks.copies(jobs.a!.id)).toEqual([0, 1]);
  expect((await weeks.node.ask('GET', `/v1/jobs/${plain.id}`)).status).toBe(404);

  // It is found in every way in which a job is found.
  expect(await weeks.node.job(jobs.a!.id)).toMatchObject({ state: 'succeeded', result: { n: 7 } });
  const list = await weeks.node.get<Page<Job>>('GET', '/v1/jobs?state=succeeded');
  expect(list.data.map((job) => job.id)).toEqual([jobs.a!.id]);
  const short = jobs.a!.id.replaceAll('-', '').slice(0, 16);
  expect(await weeks.node.get('GET', `/v1/ids?kind=job&prefix=${short}`)).toMatchObject({
    ids: [jobs.a!.id],
  });

  await weeks.work();
  await weeks.node.get('POST', `/v1/workflows/${id}/events`, { body: { event: 'paid', payload: null } });
  const ended = await workflowEnd(weeks.node, { id });
  expect(statesOf(ended)).toEqual({ a: 'succeeded', paid: 'succeeded', b: 'succeeded' });
  expect((await weeks.node.job(jobs.b!.id)).result).toEqual({ first: 7 });
  const over = weeks.now;

  // It ended within the retention, so its first step stays, though that ended long ago.
  await weeks.pass(20);
  await weeks.untilRemoved(began + 14 * DAY_MS);
  expect(await weeks.node.job(jobs.a!.id)).toMatchObject({ result: { n: 7 } });

  await weeks.pass(12);
  await weeks.untilRemoved(over);
  await until(async () => (await weeks.node.ask('GET', `/v1/workflows/${id}`)).status === 404);
  for (const job of Object.values(jobs)) {
    expect((await weeks.node.ask('GET', `/v1/jobs/${job.id}`)).status).toBe(404);
    expect(await weeks.copies(job.id)).toEqual([0, 0]);
  }
  expect(await weeks.rows('SELECT id FROM punctual.steps')).toEqual([]);
}, 240_000);

it('a failed step of a workflow that goes on can be retried when its day is long gone', async () => {
  const weeks = await Weeks.begin();
  await weeks.work();
  const began = weeks.now;
  const { id, jobs } = await submitWorkflow(weeks.node, {
    onFailure: 'continue',
    jobs: { a: echo({ fails: true }), c: echo({}), later: { wait: { event: 'go' } } } as never,
  });
  await Promise.all([weeks.node.ended(jobs.a!.id), weeks.node.ended(jobs.c!.id)]);
  await weeks.pass(40);
  await weeks.untilRemoved(began);
  expect(await weeks.copies(jobs.a!.id)).toEqual([0, 1]);
  await weeks.node.get('POST', `/v1/workflows/${id}/retry`, { body: {} });
  expect(await weeks.copies(jobs.a!.id)).toEqual([0, 0]);
  await weeks.work();
  expect((await weeks.node.ended(jobs.a!.id)).attempts).toHaveLength(2);
  expect(await weeks.copies(jobs.a!.id)).toEqual([1, 0]);
}, 240_000);

it('a crash between the moves and the removal of the day loses nothing and doubles nothing', async () => {
  const weeks = await Weeks.begin();
  await weeks.work();
  const began = weeks.now;
  const { jobs } = await submitWorkflow(weeks.node, {
    jobs: { a: echo({ n: 1 }), wait: { wait: { event: 'go' }, after: ['a'] } } as never,
  });
  const old = await submitWorkflow(weeks.node, { jobs: { only: echo({ fails: true }) } as never });
  await Promise.all([weeks.node.ended(jobs.a!.id), workflowEnd(weeks.node, old)]);
  const [day] = await weeks.rows('SELECT finished_at AS at FROM punctual.job_history WHERE id = $1', [
    jobs.a!.id,
  ]);
  await withClient(weeks.database.url, async (reader) => {
    // While somebody reads the day, it cannot be detached: this is where the leader is killed.
    await reader.query('BEGIN');
    await reader.query(`SELECT count(*) FROM punctual.${partitionName('job_history', began)}`);
    await weeks.pass(45);
    await until(async () => (await weeks.copies(jobs.a!.id))[1] === 1);
    expect(await weeks.copies(jobs.a!.id)).toEqual([0, 1]);
    expect(await weeks.node.job(jobs.a!.id)).toMatchObject({ result: { n: 1 }, finishedAt: isoOf(day!.at) });
    // Its jobs are still there, and so is it; but it would lose them if it ran again now.
    const refused = await weeks.node.ask('POST', `/v1/workflows/${old.id}/retry`, { body: {} });
    expect(refused).toMatchObject({ status: 409, body: { code: 'WORKFLOW_ENDED' } });
    expect(await weeks.copies(old.jobs.only!.id)).toEqual([1, 0]);
    await weeks.pass(0);
    await reader.query('COMMIT');
  });
  await weeks.pass(0);
  await weeks.untilRemoved(began);
  await until(async () => (await weeks.node.ask('GET', `/v1/workflows/${old.id}`)).status === 404);
  expect(await weeks.copies(jobs.a!.id)).toEqual([0, 1]);
  expect(await weeks.copies(old.jobs.only!.id)).toEqual([0, 0]);
  expect(await weeks.node.job(jobs.a!.id)).toMatchObject({ result: { n: 1 } });
}, 240_000);

it('a batch keeps its members while one of them runs, and can be retried as a whole when it failed later', async () => {
  const weeks = await Weeks.begin();
  const began = weeks.now;
  const { id, jobs } = await submitBatch(weeks.node, 2);
  await weeks.node.get('POST', `/v1/batches/${id}/cancel`);
  const [first, second] = jobs;
  // As if it had been cancelled after 44 days, by which time one member had ended long ago.
  await weeks.rows('UPDATE punctual.batches SET ended_at = $2 WHERE id = $1', [id, began + 44 * DAY_MS]);
  await weeks.pass(45);
  await weeks.untilRemoved(began);
  expect(await weeks.copies(first!.id)).toEqual([0, 1]);
  expect(await weeks.node.get('GET', `/v1/batches/${id}`)).toMatchObject({ state: 'cancelled' });
  await weeks.node.get('POST', `/v1/batches/${id}/retry`);
  expect(await weeks.copies(first!.id)).toEqual([0, 0]);
  await weeks.node.get('POST', `/v1/batches/${id}/cancel`);
  expect(await weeks.copies(first!.id)).toEqual([1, 0]);

  await weeks.rows('UPDATE punctual.batches SET ended_at = $2 WHERE id = $1', [id, weeks.now + 20 * DAY_MS]);
  await weeks.pass(40);
  await until(async () => (await weeks.copies(first!.id))[1] === 1);
  // What is kept can be deleted like other ended jobs.
  await weeks.node.get('POST', '/v1/jobs/delete', { body: { ids: [second!.id] } });
  expect(await weeks.copies(second!.id)).toEqual([0, 0]);
  await weeks.pass(20);
  await until(async () => (await weeks.node.ask('GET', `/v1/batches/${id}`)).status === 404);
  expect(await weeks.copies(first!.id)).toEqual([0, 0]);
}, 240_000);

function isoOf(moment: unknown): string {
  return new Date(Number(moment)).toISOString();
}

it('a workflow that is due to be removed cannot be retried, before anything was removed and whoever leads', async () => {
  const weeks = await Weeks.begin();
  await weeks.work();
  const { id } = await submitWorkflow(weeks.node, {
    jobs: { a: echo({ n: 7 }), b: echo({ fails: true }, 'a') } as never,
  });
  await workflowEnd(weeks.node, { id });
  await weeks.pass(45);
  // A leader looks after old days some seconds after its takeover; this one may follow one that was killed meanwhile.
  const retried = await weeks.node.ask('POST', `/v1/workflows/${id}/retry`);
  expect(retried).toMatchObject({ status: 409, body: { code: 'WORKFLOW_ENDED' } });
  expect((await weeks.node.ask('GET', `/v1/workflows/${id}`)).status).toBe(200);
});
