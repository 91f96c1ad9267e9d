import { type AuditAction, type AuditAuthor, type AuditEntry, auditEntry } from '../core/audit.js';
import { PunctualError } from '../core/errors.js';
import type { OriginLimits } from '../core/limits.js';
import { rateView } from '../core/rate.js';
import { SerialQueue } from '../core/serial-queue.js';
import type { OriginView } from '../core/wire.js';
import { addEntry } from '../store/audit.js';
import type { Queryable } from '../store/database.js';
import { leaderTransaction } from '../store/leader-statement.js';
import {
  findOriginLimits,
  limitOrigin,
  limitsOfRow,
  listOriginLimits,
  MAX_ORIGIN_LIMITS,
  type OriginLimitsRow,
  unlimitOrigin,
} from '../store/origin-limits.js';
import type { Portion } from '../store/portion.js';
import type { LeaderState } from './leader-state.js';
import type { Origin } from './origin.js';

/** What people do to origins. Changes of limits run one at a time, so that memory sees them in the order of their commits. */
export class OriginControl {
  private readonly changes = new SerialQueue();

  constructor(private readonly state: LeaderState) {}

  /** Sets the limits of an origin; they hold for calls that start from now on. */
  limit(tenant: string, origin: string, limits: OriginLimits, author?: AuditAuthor): Promise<OriginView> {
    const { state } = this;
    return this.changes.run(async () => {
      const found = await findOriginLimits(state.hot, tenant, origin);
      const views = { before: found && rowView(found), after: limitsView(limits) };
      const entry = this.entry(author, 'origin.limit', tenant, origin, views);
      const now = state.clock.now();
      const row = await state.writeRequested(entry, undefined, (db, term) =>
        limitOrigin(db, term, { tenant, origin }, limits, now),
      );
      if (!row) {
        const detail = `Tenant ${tenant} may have ${MAX_ORIGIN_LIMITS} origins with limits of their own.`;
        throw new PunctualError('QUOTA_EXCEEDED', detail, {
          quota: { name: 'originLimits', limit: MAX_ORIGIN_LIMITS },
        });
      }
      this.limited(tenant, origin, limits);
      return this.view(tenant, origin, limits);
    });
  }

  /** Takes the limits of an origin away, so that it has the usual ones. */
  unlimit(tenant: string, origin: string, author?: AuditAuthor): Promise<void> {
    const { state } = this;
    return this.changes.run(async () => {
      const found = await findOriginLimits(state.hot, tenant, origin);
      const entry = found && this.entry(author, 'origin.unlimit', tenant, origin, { before: rowView(found) });
      const isDone =
        found &&
        (await state.writeRequested(entry ?? undefined, undefined, (db, term) =>
          unlimitOrigin(db, term, tenant, origin),
        ));
      if (!isDone) throw noLimits(origin);
      this.limited(tenant, origin, null);
    });
  }

  private limited(tenant: string, origin: string, limits: OriginLimits | null): void {
    this.state.directory.setOriginLimits(tenant, origin, limits);
    this.state.origins.limited(tenant, origin, limits);
  }

  /** Closes the circuit of an origin and ends its pause. The entry comes first: what it is about is memory of this term. */
  reset(tenant: string, origin: string, author?: AuditAuthor): Promise<OriginView> {
    const { state } = this;
    return this.changes.run(async () => {
      const before = await this.current(tenant, origin);
      const { state: was, consecutiveFailures } = before;
      const entry = this.entry(author, 'origin.reset', tenant, origin, {
        before: { state: was, consecutiveFailures },
      });
      if (entry) {
        const add = (db: Queryable) => addEntry(db, entry, state.term.epoch);
        await state.write(() => leaderTransaction(state.hot, state.term, add));
        state.noteEntry();
      }
      state.origins.reset(tenant, origin);
      return this.current(tenant, origin);
    });
  }

  /** The origins of a tenant, by name: those that are in memory or were called lately, and those that have limits of their own. */
  async list(
    tenant: string,
    after: string,
    limit: number,
    readLimits: <T>(read: (db: Queryable) => Promise<T>) => Promise<T>,
  ): Promise<Portion<OriginView>> {
    const { rows, more } = await readLimits((db) => listOriginLimits(db, tenant, after, limit));
    const limits = new Map(rows.map((row) => [row.origin, limitsOfRow(row)]));
    const last = rows.at(-1)?.origin;
    // What follows the last row of a full portion comes with the next one.
    const isHere = (name: string) => name > after && (!more || name <= last!);
    const names = new Set(limits.keys());
    const now = this.state.clock.steady();
    for (const origin of this.state.origins.all(tenant)) {
      if (isHere(origin.name) && (origin.isInUse || !origin.isPlainAt(now))) names.add(origin.name);
    }
    for (const name of this.state.origins.times.namesOf(tenant)) if (isHere(name)) names.add(name);
    const sorted = [...names].sort((a, b) => (a < b ? -1 : 1));
    const shown = sorted.slice(0, limit);
    return {
      rows: shown.map((name) => this.view(tenant, name, limits.get(name) ?? null)),
      more: more || sorted.length > limit,
    };
  }

  private async current(tenant: string, origin: string): Promise<OriginView> {
    const row = await findOriginLimits(this.state.hot, tenant, origin);
    return this.view(tenant, origin, row && limitsOfRow(row));
  }

  /** An origin as the API shows it; one that is not in memory has its limits only. */
  private view(tenant: string, name: string, limits: OriginLimits | null): OriginView {
    const { origins, config } = this.state;
    const origin = origins.find(tenant, name);
    if (origin) return this.viewOf(origin);
    const { concurrency, rate = null } = limits ?? {};
    return {
      ...{ origin: name, state: 'closed', until: null, consecutiveFailures: 0, running: 0, waiting: 0 },
      concurrency: concurrency === undefined ? config.originConcurrency || null : concurrency,
      rate: rate && rateView(rate),
      latency: origins.times.of(tenant, name),
    };
  }

  private viewOf(origin: Origin): OriginView {
    const { state } = this;
    const now = state.clock.steady();
    const { circuit, pausedUntil, bucket } = origin;
    const broken = circuit.stateAt(now);
    const isPaused = pausedUntil > now;
    const until = isPaused ? pausedUntil : broken === 'open' ? circuit.openUntil : null;
    let waiting = 0;
    for (const needs of origin.needs) waiting += state.shares.readyCount(needs);
    return {
      origin: origin.name,
      state: isPaused ? 'paused' : broken === 'half-open' ? 'probing' : broken,
      until: until === null ? null : new Date(state.onDatabaseClock(until)).toISOString(),
      consecutiveFailures: circuit.failures,
      running: origin.running,
      waiting,
      concurrency: origin.concurrency,
      rate: bucket && rateView(bucket.rate),
      latency: state.origins.times.of(origin.tenant, origin.name),
    };
  }

  private entry(
    author: AuditAuthor | undefined,
    action: AuditAction,
    tenant: string,
    name: string,
    views: { readonly before?: object | null; readonly after?: object },
  ): AuditEntry | undefined {
    return (
      author && auditEntry(author, this.state.clock.now(), action, { kind: 'origin', name, tenant }, views)
    );
  }
}

function rowView(row: OriginLimitsRow): object | null {
  const limits = limitsOfRow(row);
  return limits && limitsView(limits);
}

/** What the audit shows of limits; what is as usual is left out. */
function limitsView({ concurrency, rate }: OriginLimits): object {
  return { ...(concurrency !== undefined && { concurrency }), rate: rate && rateView(rate) };
}

function noLimits(origin: string): PunctualError {
  return new PunctualError('ORIGIN_NOT_FOUND', `${origin} has no limits of its own.`);
}
