import { NO_QUOTAS, QUOTA_NAMES, type Quotas } from '../core/quotas.js';
import type { Queryable } from '../store/database.js';
import { findQuotas } from '../store/tenants.js';

/**
 * The quotas of tenants that a node keeps in memory. Every change of a quota raises one number in the database. A node that is
 * asked about quotas reads that number at most once a second, ahead of time, and reads a tenant again only if the number has
 * changed since. So a change holds on every node after about a second, and without submissions nothing is read.
 */

/** How old the number may be. */
const FRESH_MS = 1_000;
/** The age from which on the number is read again in the background. */
const RENEW_MS = 750;
const MAX_KNOWN = 20_000;
/** Tenants that one statement reads. */
const READ_AT_ONCE = 1_000;

interface Known {
  /** Null without any quota. */
  readonly quotas: Quotas | null;
  readonly version: number;
}

interface Reading {
  readonly tenants: Set<string>;
  readonly done: Promise<ReadonlyMap<string, Quotas>>;
}

export class TenantQuotas {
  /** The least recently read first. */
  private readonly known = new Map<string, Known>();
  private version = -1;
  /** When the read that found the number was sent. */
  private askedAt = Number.NEGATIVE_INFINITY;
  private renewing: Promise<unknown> | undefined;
  private reading: Reading | undefined;

  constructor(private readonly db: Queryable) {}

  /** The quotas of a tenant, null if it has none; at once if they are known. */
  of(tenant: string): Quotas | null | Promise<Quotas | null> {
    const age = performance.now() - this.askedAt;
    const known = this.known.get(tenant);
    if (age > FRESH_MS || known?.version !== this.version) return this.find(tenant);
    if (age > RENEW_MS) this.renew().catch(() => undefined);
    return known.quotas;
  }

  private async find(tenant: string): Promise<Quotas | null> {
    const known = this.known.get(tenant);
    if (!known) return this.read(tenant);
    if (performance.now() - this.askedAt > FRESH_MS) await this.renew();
    return known.version === this.version ? known.quotas : this.read(tenant);
  }

  /** Reads the number, once for all who wait for it. */
  private renew(): Promise<unknown> {
    this.renewing ??= this.ask([]).finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  /** Reads a tenant, together with others that are wanted at the same moment. */
  private async read(tenant: string): Promise<Quotas | null> {
    if (!this.reading || this.reading.tenants.size >= READ_AT_ONCE) {
      const tenants = new Set<string>();
      const done = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        if (this.reading?.tenants === tenants) this.reading = undefined;
        return this.ask([...tenants]);
      });
      this.reading = { tenants, done };
    }
    const { tenants, done } = this.reading;
    tenants.add(tenant);
    return (await done).get(tenant) ?? null;
  }

  private async ask(tenants: readonly string[]): Promise<ReadonlyMap<string, Quotas>> {
    const askedAt = performance.now();
    const { version, found } = await findQuotas(this.db, tenants);
    const answers = new Map([...found].filter(([, quotas]) => hasAny(quotas)));
    for (const tenant of tenants) {
      this.known.delete(tenant);
      this.known.set(tenant, { quotas: answers.get(tenant) ?? null, version });
    }
    for (const tenant of this.known.keys()) {
      if (this.known.size <= MAX_KNOWN) break;
      this.known.delete(tenant);
    }
    // An answer that was overtaken by a later one tells nothing new.
    if (askedAt > this.askedAt) [this.version, this.askedAt] = [version, askedAt];
    return answers;
  }
}

function hasAny(quotas: Quotas): boolean {
  return QUOTA_NAMES.some((name) => quotas[name] !== NO_QUOTAS[name]);
}
