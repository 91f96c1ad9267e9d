import { type Queryable, run, statement } from './database.js';

/** Names that jobs have used: a queue, and needs without labels of the same tenant. */
export interface UsedNames extends Record<string, unknown> {
  readonly tenant: string;
  readonly queue: string;
  readonly target: 'handler' | 'http' | 'exec';
  readonly handler: string;
}

/** Among the newest needs, so that however many there are, the search is short. A bucket stands for no origin by itself. */
const FIND_USED_NAMES = statement(
  'find-used-names',
  `
    SELECT n.tenant, q.name AS queue, n.target, n.handler
    FROM (SELECT id, tenant, target, handler, labels FROM punctual.needs ORDER BY id DESC LIMIT 100) n
    CROSS JOIN LATERAL (SELECT name FROM punctual.queues WHERE tenant = n.tenant ORDER BY name LIMIT 1) q
    WHERE n.labels = '' AND n.handler NOT LIKE 'bucket:%'
    ORDER BY n.id DESC LIMIT 1`,
);

/** Some names that are in use; null in a database without jobs. */
export async function findUsedNames(db: Queryable): Promise<UsedNames | null> {
  const [names] = await run<UsedNames>(db, FIND_USED_NAMES, []);
  return names ?? null;
}
