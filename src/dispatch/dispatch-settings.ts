import { PunctualError } from '../core/errors.js';
import type { QueueLimits, TenantSettings } from '../core/limits.js';
import { countsJobs } from '../core/quotas.js';
import { rateView } from '../core/rate.js';
import { SerialQueue } from '../core/serial-queue.js';
import type { QueueView } from '../core/wire.js';
import { addQueues } from '../store/add-queues.js';
import { pauseCluster } from '../store/cluster-state.js';
import type { QueueRow } from '../store/names.js';
import { findQueue, limitQueue, pauseQueue, rateOfRow } from '../store/queues.js';
import { addTenant, changeTenant, findTenant, quotasOfRow, type TenantRow } from '../store/tenants.js';
import type { LeaderState } from './leader-state.js';

/**
 * Pauses, limits and tenants. Changes to queues and tenants run one at a time: a change reads the current row before it
 * writes, and memory must see the writes in the order of their commits.
 */
export class DispatchSettings {
  private readonly changes = new SerialQueue();

  constructor(private readonly state: LeaderState) {}

  /** Pauses or resumes dispatch; running jobs are not affected. */
  async pause(paused: boolean): Promise<void> {
    const { state } = this;
    if (!(await state.write(() => pauseCluster(state.hot, state.term, paused)))) {
      throw paused
        ? new PunctualError('ALREADY_PAUSED', 'Dispatch is paused already.')
        : new PunctualError('NOT_PAUSED', 'Dispatch is not paused.');
    }
    state.paused = paused;
    state.wakeClaiming();
  }

  pauseQueue(tenant: string, name: string, paused: boolean): Promise<void> {
    return this.changes.run(() => this.writePause(tenant, name, paused));
  }

  private async writePause(tenant: string, name: string, paused: boolean): Promise<void> {
    const { state } = this;
    if (!(await findQueue(state.hot, tenant, name)))
      throw new PunctualError('QUEUE_NOT_FOUND', `There is no queue ${name}.`);
    const row = await state.write(() => pauseQueue(state.hot, state.term, tenant, name, paused));
    if (!row) {
      throw paused
        ? new PunctualError('ALREADY_PAUSED', `Queue ${name} is paused already.`)
        : new PunctualError('NOT_PAUSED', `Queue ${name} is not paused.`);
    }
    this.queueChanged(row);
  }

  /** Sets the limits of a queue; they apply to jobs that start from now on. */
  limitQueue(tenant: string, name: string, change: (now: QueueRow | null) => QueueLimits): Promise<void> {
    const { state } = this;
    return this.changes.run(async () => {
      const now = state.clock.now();
      const found = await findQueue(state.hot, tenant, name);
      const limits = change(found);
      // A queue that comes into being here counts against the quota like every other.
      if (!found) await addQueues(state.hot, [{ tenant, queue: name }], now, state.config.maxQueues);
      const row = await state.write(() => limitQueue(state.hot, state.term, { tenant, name }, limits, now));
      this.queueChanged(row);
    });
  }

  /** Adds a tenant; answers null when the id is taken. */
  addTenant(id: string, name: string, limits: TenantSettings): Promise<TenantRow | null> {
    const { state } = this;
    return this.changes.run(async () => {
      const row = await state.write(() =>
        addTenant(state.hot, state.term, { id, name }, limits, state.clock.now()),
      );
      if (row) this.tenantChanged(row);
      return row;
    });
  }

  /** Changes a tenant; answers null when there is none with this id. */
  changeTenant(
    id: string,
    change: (now: TenantRow) => TenantSettings & { readonly name: string },
  ): Promise<TenantRow | null> {
    const { state } = this;
    return this.changes.run(async () => {
      const now = await findTenant(state.hot, id);
      if (!now) return null;
      const { name, ...limits } = change(now);
      const row = await state.write(() => changeTenant(state.hot, state.term, { id, name }, limits));
      if (row) this.tenantChanged(row);
      return row;
    });
  }

  /** A queue as the API shows it. */
  queueView(row: QueueRow): QueueView {
    const { state } = this;
    const segments = state.backlog.segmentsOf(row.id);
    const heads = segments.map((segment) => segment.head()?.runAt).filter((at) => at !== undefined);
    const ready = segments.reduce((sum, segment) => sum + segment.readyCount, 0);
    const oldest = heads.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
    const rate = rateOfRow(row);
    return {
      name: row.name,
      paused: row.paused,
      ready,
      upcoming: segments.reduce((sum, segment) => sum + segment.size, 0) - ready,
      running: state.shares.find(row.id)?.running ?? 0,
      more: segments.some((segment) => segment.hasUnread),
      weight: row.weight,
      concurrency: row.concurrency,
      keyConcurrency: row.key_concurrency,
      rate: rate && rateView(rate),
      oldestReadyMs: heads.length === 0 ? null : Math.max(0, state.clock.now() - oldest),
      createdAt: new Date(row.created_at).toISOString(),
    };
  }

  private queueChanged(row: QueueRow): void {
    this.state.directory.setQueue(row);
    this.state.shares.queueChanged(row.id);
  }

  private tenantChanged(row: TenantRow): void {
    this.state.addedJobs.setTenant(row.id, countsJobs(quotasOfRow(row)));
    this.state.directory.setTenant(row);
    this.state.shares.tenantChanged(row.id);
  }
}
