import { setTimeout as sleep } from 'node:timers/promises';
import type { BatchSubmission } from '../../src/core/batch.js';
import type { BatchRecord, CancelRecord, Order } from './history.js';
import type { Load } from './load.js';
import { type Client, mustBeTaken, toSubmission } from './observers/client.js';
import type { DatabaseObserver } from './observers/database-observer.js';
import type { Random } from './random.js';
import { SteadyCalls } from './steady-calls.js';

/** Batches that are submitted while faults go on: mostly small, some that fail, some that nobody can run as a whole. */

const CANCELLED_SHARE = 0.05;
const TIMED_SHARE = 0.3;
const UNSERVABLE_SHARE = 0.04;
const START_TIMEOUT_MS = 10_000;
const SHORT_TIMEOUT_MS = 2_000;

/** What members are like, and how many of a hundred are so. */
const MIXTURE: readonly [share: number, make: (random: Random) => Partial<Order>][] = [
  [50, () => ({})],
  [28, (random) => ({ workMs: random.between(10, 200) })],
  [4, (random) => ({ workMs: random.between(500, 1_500) })],
  [4, () => ({ failures: 99 })],
  [10, (random) => ({ atMostOnce: true, workMs: random.between(0, 60) })],
  [4, (random) => ({ delayMs: random.between(50, 800) })],
];

/** Every worker has these labels. */
const NEEDS: readonly Order['requires'][] = [{}, {}, { 'has-0': 'yes' }, { 'has-1': 'yes', 'has-2': 'yes' }];

/** Members do not tell their batch apart from others; it names them. */
const READ_ROWS = `
  SELECT id, state, error ->> 'code' AS error, to_json(members) AS members FROM punctual.batches`;

interface Ordered extends Omit<BatchRecord, 'row' | 'cancel'> {
  readonly orders: readonly Order[];
}
type Row = NonNullable<BatchRecord['row']>;

export class BatchLoad {
  readonly #calls: SteadyCalls;
  readonly #ordered: Ordered[] = [];
  /** By the number of the first order. */
  readonly #cancels = new Map<number, CancelRecord>();

  constructor(
    private readonly client: Client,
    private readonly load: Load,
    private readonly random: Random,
    perSecond: number,
    isTooMuch: () => boolean,
  ) {
    this.#calls = new SteadyCalls(perSecond, () => this.#submit(), isTooMuch);
  }

  start(): void {
    this.#calls.start();
  }

  stop(): Promise<void> {
    return this.#calls.stop();
  }

  /** What is on record; `numberOf` tells the order of a job. */
  async records(
    database: DatabaseObserver,
    numberOf: (job: string) => number | undefined,
  ): Promise<BatchRecord[]> {
    const rows = await database.query<Row & { members: string[] }>(READ_ROWS);
    const rowOf = new Map<number | undefined, Row>(
      rows.map(({ members, ...row }) => [numberOf(members[0]!), row]),
    );
    return this.#ordered.map(({ orders: _, ...ordered }) => ({
      ...ordered,
      cancel: this.#cancels.get(ordered.members[0]!) ?? null,
      row: rowOf.get(ordered.members[0]!) ?? null,
    }));
  }

  async #submit(): Promise<void> {
    const ordered = this.#draw();
    // Drawn before anything is waited for: otherwise chance would depend on time.
    const cancelAfterMs = this.random.next() < CANCELLED_SHARE ? this.random.between(0, 600) : null;
    let id: string | null = null;
    await this.client.note(ordered.orders, async () => {
      const reply = await this.client.ask('POST', '/v1/batches', toBatch(ordered));
      mustBeTaken(reply);
      const { id: taken, jobs } = reply.body as { id: string; jobs: { id: string }[] };
      id = taken;
      return jobs.map((job) => job.id);
    });
    if (id === null || cancelAfterMs === null) return;
    await sleep(cancelAfterMs);
    this.#cancels.set(ordered.members[0]!, await this.client.cancel(`/v1/batches/${id}`));
  }

  #draw(): Ordered {
    const { random } = this;
    const size = random.next() < 0.9 ? random.between(2, 6) : random.between(15, 40);
    const servable = random.next() >= UNSERVABLE_SHARE;
    const last: Partial<Order> = servable ? {} : { requires: { nowhere: 'yes' }, servable };
    const wishes = Array.from({ length: size }, (_, index) => ({
      ...random.weighted(MIXTURE)(random),
      ...{ partOf: 'batch' as const, maxAttempts: 1, requires: random.pick(NEEDS) },
      ...(index === size - 1 && last),
    }));
    const orders = this.load.make(wishes, false);
    const ordered: Ordered = {
      ...{ orders, members: orders.map(({ n }) => n) },
      onFailure: random.pick(['cancel-rest', 'continue']),
      startTimeoutMs: servable ? (random.next() < TIMED_SHARE ? START_TIMEOUT_MS : null) : SHORT_TIMEOUT_MS,
    };
    this.#ordered.push(ordered);
    return ordered;
  }
}

function toBatch({ orders, onFailure, startTimeoutMs }: Ordered): BatchSubmission {
  const jobs = orders.map((order) => {
    // A member has one attempt.
    const { retry: _, ...job } = toSubmission(order);
    return job;
  });
  return { jobs, onFailure, ...(startTimeoutMs !== null && { startTimeout: `${startTimeoutMs}ms` }) };
}
