import { setTimeout as sleep } from 'node:timers/promises';
import { RUN_IFS, type WorkflowSubmission } from '../../src/core/workflow.js';
import type { CancelRecord, Order, StepOrder, WorkflowRecord } from './history.js';
import type { Load } from './load.js';
import { type Client, mustBeTaken, toSubmission } from './observers/client.js';
import type { DatabaseObserver } from './observers/database-observer.js';
import type { Random } from './random.js';
import { SteadyCalls } from './steady-calls.js';

/** Workflows that are submitted while faults go on: small random graphs, of which some fail and some are cancelled. */

const MAX_STEPS = 9;
const EDGE_SHARE = 0.35;
const KEYED_SHARE = 1 / 3;
const CANCELLED_SHARE = 0.05;

/** What steps are like, and how many of a hundred are so. */
const MIXTURE: readonly [share: number, make: (random: Random) => Partial<Order>][] = [
  [48, () => ({})],
  [18, (random) => ({ workMs: random.between(10, 120) })],
  [4, (random) => ({ workMs: random.between(300, 1_500) })],
  [6, () => ({ failures: 1 })],
  [10, () => ({ failures: 99, maxAttempts: 2 })],
  [9, (random) => ({ atMostOnce: true, maxAttempts: 1, workMs: random.between(0, 60) })],
  [5, (random) => ({ delayMs: random.between(50, 800) })],
];

const READ_ROWS = `
  SELECT name, id, state, steps_left AS "stepsLeft" FROM punctual.workflows WHERE name LIKE 'graph-%'`;

type Ordered = Omit<WorkflowRecord, 'row' | 'cancel'> & { readonly orders: readonly Order[] };
type Row = NonNullable<WorkflowRecord['row']>;

export class WorkflowLoad {
  readonly #calls: SteadyCalls;
  readonly #ordered: Ordered[] = [];
  readonly #cancels = new Map<string, CancelRecord>();

  constructor(
    private readonly client: Client,
    private readonly load: Load,
    private readonly random: Random,
    perSecond: number,
    isTooMuch: () => boolean,
  ) {
    this.#calls = new SteadyCalls(perSecond, (signal) => this.#submit(signal), isTooMuch);
  }

  start(): void {
    this.#calls.start();
  }

  stop(): Promise<void> {
    return this.#calls.stop();
  }

  async records(database: DatabaseObserver): Promise<WorkflowRecord[]> {
    const rows = await database.query<Row & { name: string }>(READ_ROWS);
    const rowOf = new Map(rows.map(({ name, ...row }) => [name, row]));
    return this.#ordered.map(({ orders: _, ...ordered }) => ({
      ...ordered,
      cancel: this.#cancels.get(ordered.name) ?? null,
      row: rowOf.get(ordered.name) ?? null,
    }));
  }

  async #submit(signal: AbortSignal): Promise<void> {
    const ordered = this.#draw();
    const { name, orders, steps } = ordered;
    const key = this.random.next() < KEYED_SHARE ? name : null;
    // Drawn before anything is waited for: otherwise chance would depend on time.
    const cancelAfterMs = this.random.next() < CANCELLED_SHARE ? this.random.between(0, 600) : null;
    const body = { ...toWorkflow(ordered), ...(key !== null && { key }) };
    let id: string | null = null;
    const send = async () => {
      const reply = await this.client.ask('POST', '/v1/workflows', body);
      mustBeTaken(reply);
      const { id: taken, jobs } = reply.body as { id: string; jobs: Record<string, { id: string }> };
      id = taken;
      return steps.map((step) => jobs[step.name]!.id);
    };
    await this.client.noteAnswer(orders, send, key !== null, signal);
    if (id === null || cancelAfterMs === null) return;
    await sleep(cancelAfterMs);
    this.#cancels.set(name, await this.client.cancel(`/v1/workflows/${id}`));
  }

  #draw(): Ordered {
    const { random } = this;
    const names = Array.from({ length: random.between(1, MAX_STEPS) }, (_, index) => `s${index}`);
    const wishes = names.map(() => ({ ...random.weighted(MIXTURE)(random), partOf: 'workflow' as const }));
    const orders = this.load.make(wishes, false);
    const steps = names.map((name, index): StepOrder => {
      const after = names.slice(0, index).filter(() => random.next() < EDGE_SHARE);
      // A first step with a rule about failures or successes before it would be refused.
      const runIf = after.length === 0 || random.next() < 0.5 ? 'all-succeeded' : random.pick(RUN_IFS);
      // Only what has succeeded has a result.
      const refersTo = runIf === 'all-succeeded' && random.next() < 0.5 ? (after[0] ?? null) : null;
      return { name, n: orders[index]!.n, after, runIf, refersTo };
    });
    const onFailure = random.next() < 0.6 ? 'continue' : 'stop';
    const ordered: Ordered = {
      ...{ name: `graph-${this.#ordered.length + 1}`, orders, steps },
      onFailure,
      // Nothing is stopped where a failure lets the rest go on.
      running: onFailure === 'continue' ? 'finish' : random.pick(['finish', 'cancel']),
    };
    this.#ordered.push(ordered);
    return ordered;
  }
}

function toWorkflow({ name, onFailure, running, steps, orders }: Ordered): WorkflowSubmission {
  const jobs = steps.map(({ name: step, after, runIf, refersTo }, index) => {
    const { payload, ...job } = toSubmission(orders[index]!);
    const from = refersTo === null ? {} : { from: { $from: `${refersTo}.result.n` } };
    return [step, { ...job, after, runIf, payload: { ...(payload as object), ...from } }] as const;
  });
  return { name, onFailure, running, jobs: Object.fromEntries(jobs) };
}
