import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeJobPage } from '../../../src/api/job-page.js';
import type { JobState } from '../../../src/core/job.js';
import { LAST_UUID } from '../../../src/core/uuid.js';
import type { JobPage } from '../../../src/core/wire.js';
import { countJobs } from '../../../src/store/find-jobs.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { type ListFilter, listJobs } from '../../../src/store/list-jobs.js';
import { TENANT, TestShard, WORKER } from './test-shard.js';

/** More live jobs of somebody else than a page looks at, newer than all others. */
const CROWD = 45_000;
const CROWDING = 'globex';
/** More than are found through queues. */
const MANY_JOBS = 5_100;
const MANY_QUEUES = 1_100;

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;
type Kind = 'waiting' | 'running' | 'failed' | 'held';
const KINDS: readonly Kind[] = ['waiting', 'running', 'failed', 'held'];
/** The jobs of the small tenant, newest first. */
const jobs: { readonly id: string; readonly kind: Kind; readonly queue: string }[] = [];

/** Live jobs in a queue, as the database makes them; `minutes` puts their ids into the future. */
async function fill(tenant: string, queue: string, count: number, minutes: number): Promise<void> {
  const columns = `id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at,
    task, created_by, payload`;
  await shard.pool.query(
    `INSERT INTO punctual.jobs (${columns})
     SELECT (lpad(to_hex($4::bigint + n), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
       || substr(md5($1 || n), 1, 15))::uuid, $1, q.id, 1, 5, n, 4, 3, false, 1000, 0, 'greet', 'test', 'null'
     FROM generate_series(1, $3::int) n, punctual.queues q WHERE q.tenant = $1 AND q.name = $2`,
    [tenant, queue, count, Date.now() + minutes * 60_000],
  );
}

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
  for (let n = 0; n < 60; n++) {
    const [kind, queue] = [KINDS[n % 4]!, `q${n % 5}`];
    const id = await shard.submit({ queue }, { held: kind === 'held' });
    if (kind === 'running' || kind === 'failed') await shard.claim(term, [id]);
    if (kind === 'failed') await shard.fail(term, id);
    jobs.unshift({ id, kind, queue });
  }
  for (const tenant of [CROWDING, 'many-jobs', 'many-queues']) await shard.submit({}, { tenant });
  await fill('many-jobs', 'default', MANY_JOBS, 1);
  await shard.pool.query(
    `INSERT INTO punctual.queues (tenant, name, created_at)
     SELECT 'many-queues', 'q' || n, 0 FROM generate_series(1, $1::int) n`,
    [MANY_QUEUES],
  );
  await fill(CROWDING, 'default', CROWD, 60);
  await shard.pool.query(
    `INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
     SELECT id, 1, $2, 1, 0 FROM punctual.jobs WHERE tenant = $1`,
    [CROWDING, WORKER],
  );
}, 60_000);
afterAll(() => close());

const of = (...kinds: Kind[]) => jobs.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id);

async function page(tenant: string, filter: ListFilter, limit = 100): Promise<JobPage> {
  const write = ({ id }: { id: string }) => JSON.stringify({ id });
  const { text } = await writeJobPage(limit, { reads: shard.reads, tenant, filter, write });
  return JSON.parse(text);
}

const idsOf = ({ data }: JobPage) => data.map(({ id }) => id);

/** All pages, of which none may be empty but the last. */
async function walk(tenant: string, filter: ListFilter, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const read: JobPage = await page(tenant, { ...filter, after }, limit);
    expect(read.complete).toBe(true);
    found.push(...idsOf(read));
    after = read.next;
  }
  return found;
}

describe('below a crowd of live jobs of another tenant', () => {
  it.each<[ListFilter, () => string[]]>([
    [{}, () => of(...KINDS)],
    [{ states: ['pending', 'running'] }, () => of('waiting', 'running', 'held')],
    [{ states: ['running'] }, () => of('running')],
    [{ states: ['running', 'failed'], task: 'greet' }, () => of('running', 'failed')],
    [{ queue: 'q1' }, () => jobs.filter(({ queue }) => queue === 'q1').map(({ id }) => id)],
    [{ task: 'nobody' }, () => []],
  ])('a tenant with few jobs finds them at once, in pages of any size: %j', async (filter, expected) => {
    const whole = await page(TENANT, filter);
    expect(idsOf(whole)).toEqual(expected());
    expect(whole).toMatchObject({ next: null, complete: true });
    expect(whole.scanned).toBeLessThan(200);
    expect(await walk(TENANT, filter, 7)).toEqual(expected());
  });

  it('jobs to be changed are counted in the same way', async () => {
    const count = (states: readonly JobState[]) =>
      countJobs(shard.pool, TENANT, { states }, LAST_UUID, () => true);
    expect(await count(['running'])).toEqual({ count: 15, next: null });
    expect(await count(['pending', 'running'])).toEqual({ count: 45, next: null });
  });
});

it.each([
  ['many-jobs', MANY_JOBS + 1],
  ['many-queues', 1],
])('a tenant with too much to be looked through is searched by id: %s', async (tenant, expected) => {
  const found = await listJobs(shard.reads, tenant, {}, { rows: 10, bytes: 100_000 }, 1_000, true);
  expect(found.examinedLive).toEqual({ live: 1_000, others: 1_000, few: false });
  const all: string[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const read: JobPage = await page(tenant, { after }, 1_000);
    all.push(...idsOf(read));
    after = read.next;
  }
  expect(all).toEqual([...new Set(all)].sort().reverse());
  expect(all).toHaveLength(expected);
});
