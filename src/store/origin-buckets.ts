import { bucketOfOrigin } from '../core/origin.js';
import { type Queryable, run, statement } from './database.js';
import { digestOf, type Named } from './needs-digest.js';

/** How many backlogs of origins each tenant has, but no more than the number that matters. */
const COUNT_ORIGINS = statement(
  'count-origins',
  `
    SELECT u.tenant, (
      SELECT count(*) FROM (
        SELECT 1 FROM punctual.needs n
        WHERE n.tenant = u.tenant AND n.target = 'http' AND n.handler NOT LIKE 'bucket:%' LIMIT $2) own) AS origins
    FROM unnest($1::text[]) u(tenant)`,
);

/**
 * Lets the origins of a tenant that has too many of them share a fixed number of backlogs: a submission is never refused for
 * the URL that it calls. Two nodes that add at once may together exceed the number a little.
 */
export class OriginBuckets {
  constructor(
    private readonly db: Queryable,
    private readonly maxOrigins: number,
    /** Finds the needs with these signatures that exist; `place` counts from one. */
    private readonly find: (signatures: readonly Buffer[]) => Promise<readonly { readonly place: number }[]>,
  ) {}

  /** The same needs, those of new origins beyond the number with the bucket in place of the origin. */
  async assign(unknown: readonly Named[]): Promise<readonly Named[]> {
    const calls = unknown.filter(({ needs }) => needs.target === 'http');
    if (calls.length === 0) return unknown;
    const present = await this.find(calls.map((call) => digestOf(call).signature));
    const isPresent = new Set(present.map(({ place }) => calls[place - 1]!));
    const added = calls.filter((call) => !isPresent.has(call));
    if (added.length === 0) return unknown;
    const tenants = [...new Set(added.map(({ tenant }) => tenant))];
    const counts = await run<{ tenant: string; origins: number }>(this.db, COUNT_ORIGINS, [
      tenants,
      this.maxOrigins,
    ]);
    const room = new Map(counts.map(({ tenant, origins }) => [tenant, this.maxOrigins - origins]));
    const crowded = new Set(
      added.filter(({ tenant }) => {
        const left = room.get(tenant) ?? 0;
        room.set(tenant, left - 1);
        return left <= 0;
      }),
    );
    return unknown.map((each) => {
      if (!crowded.has(each)) return each;
      const { needs } = each;
      return { ...each, needs: { ...needs, handler: bucketOfOrigin(needs.handler) } };
    });
  }
}
