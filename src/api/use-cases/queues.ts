import { PunctualError } from '../../core/errors.js';
import { DEFAULT_QUEUE_LIMITS } from '../../core/limits.js';
import { rateOf } from '../../core/rate.js';
import { QueueChange } from '../../core/schemas/limits.js';
import { validate } from '../../core/schemas/validate.js';
import type { Page, QueueView } from '../../core/wire.js';
import type { QueueRow } from '../../store/names.js';
import { findQueue, listQueues, rateOfRow } from '../../store/queues.js';
import type { NodeContext } from '../context.js';
import type { Answered } from '../json-text.js';
import { writePage } from '../page-text.js';
import type { Caller, PageFilter, QueueUseCases } from '../use-cases.js';

/** Queues of a list that are read at once. */
const PORTION = 200;

/** Queues come into being on first use; here they are looked at, limited, paused and resumed. */
export class Queues implements QueueUseCases {
  constructor(private readonly node: NodeContext) {}

  async list(caller: Caller, filter: PageFilter): Promise<Answered<Page<QueueView>>> {
    const { governing } = await this.node.leader();
    return writePage<QueueRow>(filter.limit, {
      portion: PORTION,
      read: (last, size) =>
        listQueues(this.node.pool, caller.tenant, last?.name ?? filter.after ?? '', size.rows),
      write: (row) => JSON.stringify(governing.queueView(row)),
      cursor: (row) => row.name,
    });
  }

  async get(caller: Caller, name: string): Promise<QueueView> {
    const leader = await this.node.leader();
    const row = await findQueue(this.node.pool, caller.tenant, name);
    if (!row) throw new PunctualError('QUEUE_NOT_FOUND', `There is no queue ${name}.`);
    return leader.governing.queueView(row);
  }

  /** Limits can be set before the first job of the queue comes: it comes into being with them. */
  async change(caller: Caller, name: string, body: unknown): Promise<QueueView> {
    const change = validate(QueueChange, body);
    const { governing } = await this.node.leader();
    await governing.limitQueue(caller.tenant, name, (row) => ({
      weight: change.weight ?? row?.weight ?? DEFAULT_QUEUE_LIMITS.weight,
      concurrency: change.concurrency === undefined ? (row?.concurrency ?? null) : change.concurrency,
      keyConcurrency: change.keyConcurrency ?? row?.key_concurrency ?? DEFAULT_QUEUE_LIMITS.keyConcurrency,
      rate: change.rate === undefined ? row && rateOfRow(row) : change.rate && rateOf(change.rate),
    }));
    return this.get(caller, name);
  }

  async pause(caller: Caller, name: string): Promise<QueueView> {
    await (await this.node.leader()).governing.pauseQueue(caller.tenant, name, true);
    return this.get(caller, name);
  }

  async resume(caller: Caller, name: string): Promise<QueueView> {
    await (await this.node.leader()).governing.pauseQueue(caller.tenant, name, false);
    return this.get(caller, name);
  }
}
