import { PunctualError } from '../../core/errors.js';
import type { Page, QueueView } from '../../core/wire.js';
import { findQueue, listQueues } from '../../store/queues.js';
import type { NodeContext } from '../context.js';
import type { Caller, QueueUseCases } from '../use-cases.js';

/** Queues come into being on first use; here they are looked at, paused and resumed. */
export class Queues implements QueueUseCases {
  constructor(private readonly node: NodeContext) {}

  async list(caller: Caller): Promise<Page<QueueView>> {
    const leader = await this.node.leader();
    const rows = await listQueues(this.node.pool, caller.tenant);
    return { data: rows.map((row) => leader.queueView(row)), next: null };
  }

  async get(caller: Caller, name: string): Promise<QueueView> {
    const leader = await this.node.leader();
    const row = await findQueue(this.node.pool, caller.tenant, name);
    if (!row) throw new PunctualError('QUEUE_NOT_FOUND', `There is no queue ${name}.`);
    return leader.queueView(row);
  }

  async pause(caller: Caller, name: string): Promise<QueueView> {
    await (await this.node.leader()).pauseQueue(caller.tenant, name, true);
    return this.get(caller, name);
  }

  async resume(caller: Caller, name: string): Promise<QueueView> {
    await (await this.node.leader()).pauseQueue(caller.tenant, name, false);
    return this.get(caller, name);
  }
}
