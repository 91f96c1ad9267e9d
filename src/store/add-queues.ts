import { type Queryable, run, statement } from './database.js';
import type { Named } from './needs-digest.js';
import { RefusedNamesError } from './refused-names.js';

const ADD_QUEUES = statement(
  'add-queues',
  `SELECT tenant, name, quota FROM punctual.add_queues($1::text[], $2::text[], $3::bigint, $4::bigint)`,
);

/** A queue for which its tenant has no room. */
interface Refused extends Record<string, unknown> {
  readonly tenant: string;
  readonly name: string;
  readonly quota: number;
}

/**
 * Adds the queues that do not exist; throws RefusedNamesError, with none added, if one is beyond the quota of its tenant.
 * `maxQueues` is the quota of tenants without one of their own; null checks nothing.
 */
export async function addQueues(
  db: Queryable,
  queues: readonly Pick<Named, 'tenant' | 'queue'>[],
  now: number,
  maxQueues: number | null,
): Promise<void> {
  const tenants = queues.map((each) => each.tenant);
  const names = queues.map((each) => each.queue);
  const refused = await run<Refused>(db, ADD_QUEUES, [tenants, names, now, maxQueues]);
  const [first] = refused;
  if (!first) return;
  const keys = new Set(refused.map(({ tenant, name }) => `${tenant}\n${name}`));
  const detail = `Tenant ${first.tenant} may have ${first.quota} queues; those that no job has used for a while make room.`;
  throw new RefusedNamesError(detail, ({ tenant, queue }) => keys.has(`${tenant}\n${queue}`), {
    quota: { name: 'queues', limit: first.quota },
  });
}
