import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { onTestFinished } from 'vitest';
import type { JobSubmission } from '../../../src/core/job.js';
import { readerRoleOf } from '../../../src/core/reader-role.js';
import { parseSubmission } from '../../../src/core/submission.js';
import { uuidv7 } from '../../../src/core/uuid.js';
import { type ClaimedRow, claimJobs } from '../../../src/store/claim-jobs.js';
import { inTransaction, openConnection, openPool, type Pool } from '../../../src/store/database.js';
import { type Ending, finishJobs, type Retrying, retryJobs } from '../../../src/store/finish-jobs.js';
import { toRow } from '../../../src/store/job-row.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { type Candidate, ensureLease, takeTerm } from '../../../src/store/lease.js';
import { Names, type Resolved } from '../../../src/store/names.js';
import { type StartedMember, startBatch } from '../../../src/store/start-batch.js';
import { storeBatch } from '../../../src/store/submit-batch.js';
import { type Made, type NewJob, submitJobs } from '../../../src/store/submit-jobs.js';
import { TenantReads } from '../../../src/store/tenant-reads.js';
import { createTestDatabase } from '../../database.js';

export const TENANT = 'acme';
export const WORKER = '0198c0de-0000-7000-8000-00000000beef';
export const SHARD = 0;
const TTL_MS = 600_000;
/** Deadlines that only a test which hangs ever meets. */
const CONNECTIONS = {
  applicationName: 'punctual test',
  statementTimeoutMs: 20_000,
  lockTimeoutMs: 20_000,
  idleInTransactionTimeoutMs: 20_000,
};

/** Where a new job goes; live unless told otherwise. */
interface Place {
  readonly tenant?: string;
  readonly admitAt?: number;
  readonly held?: boolean;
}

/** A database of its own with the pools of a node, and the moves of a job without the code that decides them. */
export class TestShard {
  /** Behind row-level security, as the embedded server always has it. */
  readonly reads: TenantReads;
  private readonly names: Names;
  private readonly resolved = new Set<Resolved>();

  private constructor(
    readonly url: string,
    /** For what only the owner of the server may do. */
    private readonly administratorUrl: string,
    readonly hot: Pool,
    readonly pool: Pool,
  ) {
    this.names = new Names(hot);
    this.reads = new TenantReads(pool, readerRoleOf(new URL(url).username));
  }

  /** Opens a shard that the running test, or the file when called in `beforeAll`, closes with `close`. */
  static async open(): Promise<{ shard: TestShard; close(): Promise<void> }> {
    const database = await createTestDatabase();
    const options = { ...CONNECTIONS, max: 12 };
    const hot = openPool(database.url, { ...options, hot: true });
    const pool = openPool(database.url, { ...options, hot: false });
    const close = async () => {
      await Promise.all([hot.end(), pool.end()]);
      await database.drop();
    };
    return { shard: new TestShard(database.url, database.administratorUrl, hot, pool), close };
  }

  /** A shard that lives as long as the running test. */
  static async forTest(): Promise<TestShard> {
    const { shard, close } = await TestShard.open();
    onTestFinished(close);
    return shard;
  }

  /** A connection of its own, closed with the running test. */
  async connect(url = this.url): Promise<pg.Client> {
    const client = await openConnection(url, { ...CONNECTIONS, hot: false });
    onTestFinished(() => client.end().catch(() => undefined));
    return client;
  }

  /** The same for what only the owner of the server may do. */
  connectAsAdministrator(): Promise<pg.Client> {
    return this.connect(this.administratorUrl);
  }

  /** A term that lasts longer than any test. */
  async lead(candidate: Partial<Candidate> = {}): Promise<TermKey> {
    const holder = candidate.holder ?? 'node-a';
    await ensureLease(this.pool, SHARD);
    const epoch = await inTransaction(this.pool, (db) => takeTerm(db, candidateOf(candidate)));
    if (epoch === null) throw new Error('the term is not to be had');
    return { shard: SHARD, epoch, holder };
  }

  /** Makes the shard one that nobody has ever led. */
  async forgetTerms(): Promise<void> {
    await this.pool.query('TRUNCATE punctual.leases, punctual.terms, punctual.tallies');
  }

  /** Puts the end of the lease into the past, as if its holder had not renewed it. */
  async expireLease(): Promise<void> {
    await this.pool.query(`UPDATE punctual.leases SET expires_at = clock_timestamp() - interval '1 ms'`);
  }

  /** The row of a submission, with names resolved, not stored yet. */
  async newJob(body: Partial<JobSubmission> = {}, place: Place = {}): Promise<NewJob> {
    const now = Date.now();
    const tenant = place.tenant ?? TENANT;
    const task = body.target === undefined ? { task: 'greet' } : {};
    const limits = {
      maxPayload: 262_144,
      maxDepth: 64,
      jobTimeout: 60_000,
      maxJobTimeout: 60_000,
      allowCommands: false,
    };
    const submission = parseSubmission({ ...task, ...body }, { now, ...limits });
    const { queue, needs } = submission.definition;
    const [ids] = await this.names.resolve([{ tenant, queue, needs }], now);
    this.resolved.add(ids!);
    return {
      row: toRow(uuidv7(now), submission, { ...ids!, tenant, createdAt: now, createdBy: 'test' }),
      admitAt: place.admitAt ?? (place.held ? now : null),
      held: place.held ?? false,
      keyRule: submission.definition.keyRule,
      saidAt: null,
    };
  }

  /** Stores one job; answers with its id. */
  async submit(body: Partial<JobSubmission> = {}, place: Place = {}): Promise<string> {
    const [id] = await this.store([await this.newJob(body, place)]);
    return id!;
  }

  /** Stores many jobs alike. */
  async submitMany(count: number, body: Partial<JobSubmission> = {}): Promise<string[]> {
    const jobs: NewJob[] = [];
    for (let i = 0; i < count; i++) jobs.push(await this.newJob(body));
    return this.store(jobs);
  }

  /** Stores jobs that `newJob` made; answers with their ids, or those of earlier ones with their keys. */
  async store(jobs: readonly NewJob[]): Promise<string[]> {
    const { registered } = await submitJobs(this.hot, jobs, this.made(), Date.now());
    return jobs.map(({ row }, i) => (registered === null ? row.id : registered[i]!.id));
  }

  /** What a submission made just now takes the names of its jobs for. */
  made(): Made {
    return { names: [...this.resolved], at: Date.now(), since: performance.now() };
  }

  claim(term: TermKey, ids: readonly string[], fence = 1): Promise<ClaimedRow[]> {
    const intents = ids.map((id) => ({ id, fence, worker: WORKER }));
    return claimJobs(this.hot, term, intents, Date.now(), new Map());
  }

  /** Stores a batch of jobs alike, or of those given. */
  async submitBatch(
    term: TermKey,
    size: number,
    members?: readonly string[],
  ): Promise<{ id: string; members: string[] }> {
    const now = Date.now();
    const jobs: NewJob[] = [];
    for (let i = 0; i < size; i += 1) jobs.push(await this.newJob());
    const batch = {
      ...{ id: uuidv7(now), tenant: TENANT, onFailure: 'continue' as const, startTimeoutMs: null },
      ...{ dueAt: now, places: '[]', createdBy: 'test', scheduled: null },
    };
    const rows = jobs.map(({ row }) => row);
    await storeBatch(this.hot, term, batch, rows, this.made().names, now);
    if (members)
      await this.pool.query('UPDATE punctual.batches SET members = $2 WHERE id = $1', [batch.id, members]);
    return { id: batch.id, members: [...(members ?? rows.map(({ id }) => id))] };
  }

  /** Starts a batch that was stored just now. */
  startBatch(
    term: TermKey,
    { id, members }: { readonly id: string; readonly members: readonly string[] },
    fence = 1,
  ): Promise<StartedMember[]> {
    const counts = { jobs: members.length, lateness: [1], latenessMs: 0 };
    const intents = members.map((member) => ({ id: member, fence, worker: WORKER }));
    return startBatch(this.hot, term, { id, tenant: TENANT, counts }, intents, Date.now());
  }

  /** Ends running attempts; answers with the ids of those that were ended. */
  async finish(term: TermKey, endings: readonly (Partial<Ending> & { id: string })[]): Promise<string[]> {
    const whole = endings.map((ending) => ({ ...SUCCEEDED, epoch: term.epoch, ...ending }));
    const refused = await finishJobs(this.hot, term, whole, Date.now());
    const ids = new Set(endings.map(({ id }) => id));
    return [...ids].filter((id) => !refused.has(id));
  }

  /** Ends one running attempt as failed, for good. */
  fail(term: TermKey, id: string, fence = 1): Promise<string[]> {
    return this.finish(term, [
      { id, fence, state: 'failed', outcome: 'failed', result: null, error: FAILURE },
    ]);
  }

  async retry(term: TermKey, id: string, fence = 1, change: Partial<Retrying> = {}): Promise<string[]> {
    const now = Date.now();
    const attempt = { fence, epoch: term.epoch, worker: WORKER, claimedAt: now, finishedAt: now };
    const refused = await retryJobs(
      this.hot,
      term,
      [
        {
          id,
          fence,
          outcome: 'failed',
          runAt: now,
          lateBy: 0,
          attempt: JSON.stringify({ ...attempt, startedAt: null, outcome: 'failed', error: null }),
          ...change,
        },
      ],
      now,
    );
    return refused.has(id) ? [] : [id];
  }

  /** How many rows a table holds. */
  async count(table: string): Promise<number> {
    const { rows } = await this.pool.query(`SELECT count(*) AS n FROM punctual.${table}`);
    return rows[0].n;
  }
}

/** The first attempt of a job, ended well. */
export const SUCCEEDED = {
  fence: 1,
  worker: WORKER,
  epoch: 1,
  claimedAt: Date.now(),
  state: 'succeeded',
  outcome: 'succeeded',
  result: 'null',
  error: null,
  startedAt: null,
  progress: null,
  execution: null,
} as const;

/** The error of a failed attempt, as JSON. */
export const FAILURE = JSON.stringify({ message: 'it failed' });

/** A candidate with the ways of an ordinary node, apart from what is given. */
export function candidateOf(candidate: Partial<Candidate>): Candidate {
  return {
    shard: SHARD,
    holder: 'node-a',
    holderUrl: 'http://127.0.0.1:1',
    sessionPid: null,
    aboveEpoch: 0,
    ttlMs: TTL_MS,
    reason: 'test',
    ...candidate,
  };
}

/** An id that no job has. */
export function nobody(): string {
  return randomUUID();
}

/** Resolves when the session waits for a lock; only the server knows, so it is asked again and again. */
export async function waitsForLock(db: Pool, pid: number): Promise<void> {
  await until(async () => {
    const { rows } = await db.query('SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted', [pid]);
    return rows.length > 0;
  });
}

/** Resolves when the condition holds, looking every few milliseconds; rejects after ten seconds. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('what the test waits for did not happen');
    await pause(5);
  }
}

/** The process id of a connection's session. */
export async function pidOf(client: pg.Client | pg.PoolClient): Promise<number> {
  return (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
}
