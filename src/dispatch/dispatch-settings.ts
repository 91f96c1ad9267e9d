import { type AuditAuthor, auditEntry } from '../core/audit.js';
import { PunctualError } from '../core/errors.js';
import type { QueueLimits, TenantSettings } from '../core/limits.js';
import { countsJobs } from '../core/quotas.js';
import { rateView } from '../core/rate.js';
import { SerialQueue } from '../core/serial-queue.js';
import type { QueueView } from '../core/wire.js';
import { addQueues } from '../store/add-queues.js';
import { pauseCluster } from '../store/cluster-state.js';
import type { Queryable } from '../store/database.js';
import type { QueueRow } from '../store/names.js';
import { findQueue, limitQueue, pauseQueue, rateOfRow } from '../store/queues.js';
import type { Requested } from '../store/requested.js';
import { addTenant, changeTenant, findTenant, quotasOfRow, type TenantRow } from '../store/tenants.js';
import { limitsView, queueView, tenantRowView, tenantView } from './audit-views.js';
import type { LeaderState } from './leader-state.js';

/**
 * Pauses, limits and tenants. Changes to queues and tenants run one at a time: a change reads the current row before it
 * writes, and memory must see the writes in the order of their commits.
 */
export class DispatchSettings {
  private readonly changes = new SerialQueue();

  constructor(private readonly state: LeaderState) {}

  /** Pauses or resumes dispatch; running jobs are not affected. */
  async pause(paused: boolean, { author, keep }: Requested<void> = {}): Promise<void> {
    const { state } = this;
    const subject = { kind: 'cluster', name: `shard ${state.term.shard}`, tenant: null } as const;
    const action = paused ? 'cluster.pause' : 'cluster.resume';
    const change = { before: { paused: !paused }, after: { paused } };
    const entry = author && auditEntry(author, state.clock.now(), action, subject, change);
    const keepIt = keep && ((db: Queryable) => keep(db));
    const isDone = await state.writeRequested(entry, keepIt, (db, term) => pauseCluster(db, term, paused));
    if (!isDone) {
      throw paused
        ? new PunctualError('ALREADY_PAUSED', 'Dispatch is paused already.')
        : new PunctualError('NOT_PAUSED', 'Dispatch is not paused.');
    }
    state.paused = paused;
    state.gangs.changed();
    state.wakeClaiming();
  }

  pauseQueue(
    tenant: string,
    name: string,
    paused: boolean,
    requested: Requested<QueueRow | null> = {},
  ): Promise<QueueRow> {
    return this.changes.run(() => this.writePause(tenant, name, paused, requested));
  }

  private async writePause(
    tenant: string,
    name: string,
    paused: boolean,
    { author, keep }: Requested<QueueRow | null>,
  ): Promise<QueueRow> {
    const { state } = this;
    const found = await findQueue(state.hot, tenant, name);
    if (!found) throw new PunctualError('QUEUE_NOT_FOUND', `There is no queue ${name}.`);
    const entry =
      author &&
      auditEntry(
        author,
        state.clock.now(),
        paused ? 'queue.pause' : 'queue.resume',
        { kind: 'queue', name, tenant },
        { before: queueView(found), after: queueView({ ...found, paused }) },
      );
    const row = await state.writeRequested(entry, keep, (db, term) =>
      pauseQueue(db, term, tenant, name, paused),
    );
    if (!row) {
      throw paused
        ? new PunctualError('ALREADY_PAUSED', `Queue ${name} is paused already.`)
        : new PunctualError('NOT_PAUSED', `Queue ${name} is not paused.`);
    }
    this.queueChanged(row, paused ? 'queue.paused' : 'queue.resumed');
    return row;
  }

  /** Sets the limits of a queue; they apply to jobs that start from now on. */
  limitQueue(
    tenant: string,
    name: string,
    change: (now: QueueRow | null) => QueueLimits,
    author?: AuditAuthor,
  ): Promise<void> {
    const { state } = this;
    return this.changes.run(async () => {
      const found = await findQueue(state.hot, tenant, name);
      const limits = change(found);
      const now = state.clock.now();
      const views = {
        before: found && queueView(found),
        after: limitsView(limits, found?.paused ?? false),
      };
      // A queue that comes into being here counts against the quota like every other.
      if (!found) await addQueues(state.hot, [{ tenant, queue: name }], now, state.config.maxQueues);
      const entry = author && auditEntry(author, now, 'queue.change', { kind: 'queue', name, tenant }, views);
      const row = await state.writeRequested(entry, undefined, (db, term) =>
        limitQueue(db, term, { tenant, name }, limits, now),
      );
      this.queueChanged(row, 'queue.changed');
    });
  }

  /** Adds a tenant; answers null when the id is taken. */
  addTenant(
    id: string,
    name: string,
    limits: TenantSettings,
    { author, keep }: Requested<TenantRow | null> = {},
  ): Promise<TenantRow | null> {
    const { state } = this;
    return this.changes.run(async () => {
      const now = state.clock.now();
      const subject = { kind: 'tenant', name: id, tenant: id } as const;
      const after = tenantView({ ...limits, name });
      const entry = author && auditEntry(author, now, 'tenant.create', subject, { after });
      const row = await state.writeRequested(entry, keep, (db, term) =>
        addTenant(db, term, { id, name }, limits, now),
      );
      if (row) this.tenantChanged(row);
      return row;
    });
  }

  /** Changes a tenant; answers null when there is none with this id. */
  changeTenant(
    id: string,
    change: (now: TenantRow) => TenantSettings & { readonly name: string },
    author?: AuditAuthor,
  ): Promise<TenantRow | null> {
    const { state } = this;
    return this.changes.run(async () => {
      const now = await findTenant(state.hot, id);
      if (!now) return null;
      const { name, ...limits } = change(now);
      const subject = { kind: 'tenant', name: id, tenant: id } as const;
      const views = { before: tenantRowView(now), after: tenantView({ ...limits, name }) };
      const entry = author && auditEntry(author, state.clock.now(), 'tenant.change', subject, views);
      const row = await state.writeRequested(entry, undefined, (db, term) =>
        changeTenant(db, term, { id, name }, limits),
      );
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

  private queueChanged(row: QueueRow, event: 'queue.paused' | 'queue.resumed' | 'queue.changed'): void {
    const { state } = this;
    state.directory.setQueue(row);
    state.shares.queueChanged(row.id);
    state.gangs.changed();
    if (state.events.isHeard) state.events.queue(event, row.tenant, row.name);
  }

  private tenantChanged(row: TenantRow): void {
    this.state.addedJobs.setTenant(row.id, countsJobs(quotasOfRow(row)));
    this.state.directory.setTenant(row);
    this.state.shares.tenantChanged(row.id);
    this.state.gangs.changed();
  }
}
