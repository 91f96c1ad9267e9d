import { onTestFinished } from 'vitest';
import type { ConfigInput } from '../../../src/core/config.js';
import type { Job } from '../../../src/core/job.js';
import { SILENT_LOG } from '../../../src/core/log.js';
import type { OccurrenceView, Page, ScheduleView, StatsView } from '../../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { type ApiUser, nodeForTest, type TestNode } from '../../node-for-tests.js';
import { TestClock } from '../../test-clock.js';
import { until } from '../store/test-shard.js';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;

/** A shard whose nodes come and go, on a clock that the test moves. */
export class ScheduleTester {
  readonly clock = new TestClock();
  /** What the nodes warned about. */
  readonly warnings: string[] = [];
  node!: TestNode;

  private constructor(readonly database: TestDatabase) {}

  static async start(): Promise<ScheduleTester> {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const tester = new ScheduleTester(database);
    await tester.startNode();
    return tester;
  }

  /** Starts a node that leads when nobody else does. */
  async startNode(settings: ConfigInput = {}): Promise<TestNode> {
    const log = {
      ...SILENT_LOG,
      warn: (_: unknown, message: string) => void this.warnings.push(message),
      error: (fields: unknown, message: string) => console.error(message, fields),
    };
    this.node = await nodeForTest({ database: this.database, clock: this.clock, settings, log });
    await until(() => this.node.node.leads());
    return this.node;
  }

  /** Ends the node, lets time pass without any, and starts another, which takes a new term. */
  async stopFor(ms: number, settings: ConfigInput = {}): Promise<void> {
    await this.node.node.stop();
    this.clock.advance(ms);
    await this.startNode(settings);
  }

  create(schedule: Record<string, unknown>): Promise<ScheduleView> {
    return this.node.get('POST', '/v1/schedules', {
      body: { name: 'tick', task: 'work', ...schedule },
    });
  }

  schedule(name = 'tick'): Promise<ScheduleView> {
    return this.node.get('GET', `/v1/schedules/${name}`);
  }

  steer(verb: string, body?: unknown): Promise<unknown> {
    return this.node.get('POST', `/v1/schedules/tick/${verb}`, body === undefined ? {} : { body });
  }

  change(body: Record<string, unknown>): Promise<ScheduleView> {
    return this.node.get('PATCH', '/v1/schedules/tick', { body });
  }

  /** The ledger in order of time. */
  ledger(query = ''): Promise<OccurrenceView[]> {
    return readLedger(this.node, 'tick', query);
  }

  /** The ledger as `offset state reason`, counted in seconds from a moment. */
  async lines(since: number, query = ''): Promise<string[]> {
    return (await this.ledger(query)).map((row) => line(row, since));
  }

  /** Waits until the ledger looks like this. */
  async ledgerBecomes(since: number, expected: readonly string[], query = ''): Promise<void> {
    let seen: readonly string[] = [];
    await until(async () => {
      seen = await this.lines(since, query);
      return seen.join('\n') === expected.join('\n');
    }).catch(() => {
      throw new Error(`the ledger is\n  ${seen.join('\n  ')}\nand not\n  ${expected.join('\n  ')}`);
    });
  }

  /** The jobs of the schedule in the order they are due, in whatever state. */
  async jobs(state?: string): Promise<Job[]> {
    const query = `schedule=tick&limit=1000${state === undefined ? '' : `&state=${state}`}`;
    const page = await this.node.get<Page<Job>>('GET', `/v1/jobs?${query}`);
    return [...page.data].sort((a, b) => Date.parse(a.runAt) - Date.parse(b.runAt));
  }

  stats(): Promise<StatsView> {
    return this.node.get('GET', '/v1/stats');
  }
}

/** One row, such as `+60s ran` or `+60s…+240s missed downtime (4)`. */
function line(row: OccurrenceView, since: number): string {
  const offset = (time: string) => `+${(Date.parse(time) - since) / SECOND}s`;
  const span = row.until === undefined ? offset(row.at) : `${offset(row.at)}…${offset(row.until)}`;
  const count = row.count === undefined ? '' : ` (${row.count})`;
  return `${span} ${row.state}${row.reason === undefined ? '' : ` ${row.reason}`}${count}`;
}

/** A schedule's whole ledger in order of time, read page by page. */
export async function readLedger(node: ApiUser, name: string, query = ''): Promise<OccurrenceView[]> {
  const rows: OccurrenceView[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const cursor: string = after === '' ? '' : `&after=${after}`;
    const path = `/v1/schedules/${name}/occurrences?limit=1000${query}${cursor}`;
    const page: Page<OccurrenceView> = await node.get('GET', path);
    rows.push(...page.data);
    after = page.next;
  }
  return rows.reverse();
}
