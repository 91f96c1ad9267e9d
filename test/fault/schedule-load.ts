import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerRecord, Order, ScheduleRecord } from './history.js';
import { monotonic } from './monotonic.js';
import type { Client } from './observers/client.js';
import type { DatabaseObserver } from './observers/database-observer.js';

/** Schedules that fire while faults go on, and what is on record about them at the end. */

interface Wanted {
  readonly name: string;
  readonly everyMs: number;
  readonly overlap: ScheduleRecord['overlap'];
  readonly workMs: number;
  /** Whether each occurrence is a workflow of two steps. */
  readonly isWorkflow?: boolean;
}

/** One that takes longer than its interval must skip or queue. */
const SCHEDULES: readonly Wanted[] = [
  { name: 'tick', everyMs: 1_000, overlap: 'allow', workMs: 5 },
  { name: 'skipping', everyMs: 1_000, overlap: 'skip', workMs: 1_500 },
  { name: 'queueing', everyMs: 2_000, overlap: 'queue', workMs: 100 },
  { name: 'graphs', everyMs: 2_000, overlap: 'allow', workMs: 5, isWorkflow: true },
];

/** Orders of schedules have numbers below zero, by which they are known among the effects. */
export const SCHEDULED_ORDER = -1;
const REPEAT_PAUSE_MS = 200;
const DRAIN_MS = 60_000;

const READ_LEDGER = `
  SELECT o.at::float8 AS at, o.state, o.reason, o.job, o.until::float8 AS until, o.count::int AS count,
    o.recorded_at::float8 AS "recordedAt"
  FROM punctual.occurrences o JOIN punctual.schedules s ON s.id = o.schedule
  WHERE s.name = $1 AND NOT o.by_hand ORDER BY o.at`;

const READ_WAITING = `
  SELECT count(*)::int AS "left" FROM punctual.occurrences WHERE state = 'waiting'`;

const READ_LEFT = `
  SELECT ((SELECT count(*) FROM punctual.occurrences WHERE state = 'waiting')
    + (SELECT count(*) FROM punctual.jobs WHERE schedule IS NOT NULL)
    + (SELECT count(*) FROM punctual.workflows WHERE schedule IS NOT NULL AND state = 'running'))::int AS "left"`;

/** Of a workflow, the job by which the run is known; its other steps must have ended well, too. */
const READ_JOBS = `
  WITH found AS (
    SELECT id, occurrence::float8 AS occurrence, state FROM punctual.job_history WHERE schedule = $1
    UNION ALL SELECT id, occurrence::float8, 'live' FROM punctual.jobs WHERE schedule = $1)
  SELECT f.id, f.occurrence, CASE WHEN w.state IS NULL OR w.state = 'succeeded' THEN f.state ELSE w.state END AS state
  FROM found f LEFT JOIN punctual.steps s ON s.id = f.id LEFT JOIN punctual.workflows w ON w.id = s.workflow
  WHERE coalesce(s.parents, 0) = 0`;

export class ScheduleLoad {
  private readonly until = new Map<string, number>();

  constructor(
    private readonly client: Client,
    private readonly database: DatabaseObserver,
  ) {}

  /** Makes the schedules; whoever has made one in a request whose answer was lost has made it. */
  async start(): Promise<void> {
    for (const { name, everyMs, overlap, workMs, isWorkflow = false } of SCHEDULES) {
      const payload: Partial<Order> = { n: SCHEDULED_ORDER, workMs, failures: 0, blocking: false };
      const retry = { onWorkerLost: { maxAttempts: 50 } };
      const job = { task: 'effect', payload, retry };
      if (isWorkflow) {
        const jobs = { first: job, second: { ...job, after: ['first'] } };
        await this.client.insist('PUT', `/v1/workflow-definitions/${name}`, { jobs });
      }
      const work = isWorkflow ? { workflow: name } : job;
      const body = { name, ...work, every: `${everyMs}ms`, overlap };
      await this.client.insist('POST', '/v1/schedules', body);
    }
  }

  /**
   * Ends them: what was due before must be on record, what comes after must not run. What waits for the run before it would wait
   * until the schedule is resumed, so it runs first: behind much other work, a schedule may be minutes late.
   */
  async stop(): Promise<void> {
    await this.untilNone(READ_WAITING);
    for (const { name } of SCHEDULES) {
      this.until.set(name, Date.now());
      await this.client.insist('POST', `/v1/schedules/${name}/pause`);
    }
  }

  /** Waits until all that was due has run. */
  drained(): Promise<void> {
    return this.untilNone(READ_LEFT);
  }

  /** Waits until nothing is left; gives up when nothing moves any more. */
  private async untilNone(query: string): Promise<void> {
    let least = Number.POSITIVE_INFINITY;
    for (let since = monotonic(); monotonic() - since < DRAIN_MS; await sleep(REPEAT_PAUSE_MS)) {
      const [row] = await this.database.query<{ left: number }>(query);
      if (row!.left === 0) return;
      if (row!.left < least) since = monotonic();
      least = Math.min(least, row!.left);
    }
  }

  async records(): Promise<ScheduleRecord[]> {
    const records: ScheduleRecord[] = [];
    for (const { name, everyMs, overlap } of SCHEDULES) {
      const [made] = await this.database.query<{ at: number }>(
        'SELECT created_at::float8 AS at FROM punctual.schedules WHERE name = $1',
        [name],
      );
      const ledger = await this.database.query<LedgerRecord>(READ_LEDGER, [name]);
      const jobs = await this.database.query<ScheduleRecord['jobs'][number]>(READ_JOBS, [name]);
      const { at: createdAt } = made!;
      records.push({ name, everyMs, overlap, createdAt, until: this.until.get(name)!, ledger, jobs });
    }
    return records;
  }
}
