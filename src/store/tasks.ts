import { PunctualError } from '../core/errors.js';
import { inTransaction, type Pool, type Queryable, run, statement } from './database.js';
import { bytesOf, type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * Storing and reading the definitions of tasks. Any node changes them: no decision of a leader depends on them beyond
 * what it reads for a job. A change takes the row of `task_changes` first, so that changes have an order.
 */

/** A definition as it is stored. */
export interface TaskRow extends Record<string, unknown> {
  readonly tenant: string;
  readonly name: string;
  /** JSON text in the form of the public API, without the name. */
  readonly definition: string;
  /** The worker that published it; null when a person defined it. */
  readonly published_by: string | null;
  readonly created_at: number;
  readonly created_by: string;
  readonly changed_at: number;
  readonly changed_by: string;
  readonly version: number;
}

/** What is written about a task. */
export interface NewDefinition {
  readonly definition: string;
  readonly publishedBy: string | null;
}

/** The outcome of a change. */
export interface TaskChanged {
  /** The task as it is now; null when there is none. */
  readonly row: TaskRow | null;
  readonly created: boolean;
  /** The number of the change, and how many definitions the tenant has since; null when nothing was written. */
  readonly change: { readonly version: number; readonly tasks: number } | null;
}

/** The most bytes of all definitions of a tenant: a bulk may need every one of them at once. */
const MAX_TENANT_BYTES = 8 * 1024 * 1024;

const COLUMNS =
  'tenant, name, definition, published_by, created_at, created_by, changed_at, changed_by, version';

const FIND_TASK = statement(
  'find-task',
  `SELECT ${COLUMNS} FROM punctual.tasks WHERE tenant = $1 AND name = $2`,
);

const LIST_TASKS = statement(
  'list-tasks',
  portionOf(
    `SELECT ${COLUMNS}, ${bytesOf('definition')} AS bytes FROM punctual.tasks
     WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3::int + 1`,
    'name',
    { rows: '$3', bytes: '$4' },
  ),
);

const READ_TASKS = statement(
  'read-tasks',
  'SELECT name, definition FROM punctual.tasks WHERE tenant = $1 AND name = ANY($2::text[])',
);

/** One row even if nothing has changed: a number that is lower than one seen before tells of a restored database. */
const READ_CHANGES = statement(
  'read-task-changes',
  `
    SELECT c.version AS last, t.tenant, t.version, t.tasks FROM punctual.task_changes c
    LEFT JOIN LATERAL (
      SELECT tenant, version, tasks FROM punctual.task_tenants WHERE version > $1 ORDER BY version LIMIT $2) t ON true
    WHERE c.id = 1 ORDER BY t.version`,
);

const COUNT_CHANGE = statement(
  'count-task-change',
  'UPDATE punctual.task_changes SET version = version + 1 WHERE id = 1 RETURNING version',
);

const MARK_TENANT = statement(
  'mark-task-tenant',
  `
    INSERT INTO punctual.task_tenants (tenant, version, tasks, bytes) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant) DO UPDATE SET version = excluded.version,
      tasks = punctual.task_tenants.tasks + excluded.tasks, bytes = punctual.task_tenants.bytes + excluded.bytes
    RETURNING tasks, bytes`,
);

const WRITE_TASK = statement(
  'write-task',
  `
    INSERT INTO punctual.tasks (tenant, name, definition, published_by, created_at, created_by, changed_at, changed_by)
    VALUES ($1, $2, $3, $4, $5, $6, $5, $6)
    ON CONFLICT (tenant, name) DO UPDATE SET definition = excluded.definition, published_by = excluded.published_by,
      changed_at = excluded.changed_at, changed_by = excluded.changed_by, version = punctual.tasks.version + 1
    RETURNING ${COLUMNS}`,
);

const DELETE_TASK = statement('delete-task', 'DELETE FROM punctual.tasks WHERE tenant = $1 AND name = $2');

/** The task of that name. */
export async function findTask(db: Queryable, tenant: string, name: string): Promise<TaskRow | null> {
  return (await run<TaskRow>(db, FIND_TASK, [tenant, name]))[0] ?? null;
}

/** A portion of a tenant's tasks by name. */
export function listTasks(
  db: Queryable,
  tenant: string,
  after: string,
  { rows, bytes }: PortionSize,
): Promise<Portion<TaskRow>> {
  return readPortion<TaskRow>(db, LIST_TASKS, [tenant, after, rows, bytes]);
}

/** The definitions of these names, as far as there are any. */
export function readTasks(
  db: Queryable,
  tenant: string,
  names: readonly string[],
): Promise<{ name: string; definition: string }[]> {
  return run(db, READ_TASKS, [tenant, names]);
}

/** The tenants whose definitions have changed after a number, and the number of the last change of all. */
export async function readTaskChanges(
  db: Queryable,
  since: number,
  limit: number,
): Promise<{ last: number; tenants: { tenant: string; version: number; tasks: number }[] }> {
  const rows = await run<{ last: number; tenant: string | null; version: number; tasks: number }>(
    db,
    READ_CHANGES,
    [since, limit],
  );
  const tenants = rows.flatMap(({ tenant, version, tasks }) =>
    tenant === null ? [] : [{ tenant, version, tasks }],
  );
  return { last: rows[0]?.last ?? 0, tenants };
}

/** Who changes which task, and when. */
export interface TaskAuthor {
  readonly tenant: string;
  readonly name: string;
  readonly actor: string;
  readonly now: number;
  /** The most definitions that the tenant may have. */
  readonly maxTasks: number;
}

/** What else is written in the transaction of a change. */
export type AlsoOnChange = (db: Queryable, before: TaskRow | null, changed: TaskChanged) => Promise<void>;

/**
 * Writes a definition: `decide` tells which, given the present one, or null to leave that as it is. It is asked again
 * under the lock; where it leaves things as they are, as most publications do, nothing is locked or written. `also` runs
 * in the transaction of a change.
 */
export async function writeTask(
  pool: Pool,
  author: TaskAuthor,
  decide: (found: TaskRow | null) => NewDefinition | null,
  also: AlsoOnChange,
): Promise<TaskChanged> {
  const { tenant, name, actor, now, maxTasks } = author;
  const found = await findTask(pool, tenant, name);
  if (decide(found) === null) return { row: found, created: false, change: null };
  return changeInOrder(pool, async (db, version) => {
    const present = await findTask(db, tenant, name);
    const wanted = decide(present);
    if (wanted === null) return { row: present, created: false, change: null };
    const created = present === null;
    const more = { tasks: created ? 1 : 0, bytes: bytesIn(wanted) - (present ? bytesIn(present) : 0) };
    const { tasks, bytes } = await markTenant(db, tenant, version, more);
    if (created && tasks > maxTasks)
      throw new PunctualError('QUOTA_EXCEEDED', `Tenant ${tenant} may define ${maxTasks} tasks.`);
    if (more.bytes > 0 && bytes > MAX_TENANT_BYTES) {
      const detail = `The definitions of tenant ${tenant} may have ${MAX_TENANT_BYTES} bytes together.`;
      throw new PunctualError('QUOTA_EXCEEDED', detail);
    }
    const values = [tenant, name, wanted.definition, wanted.publishedBy, now, actor];
    const [row] = await run<TaskRow>(db, WRITE_TASK, values);
    const changed = { row: row!, created, change: { version, tasks } };
    await also(db, present, changed);
    return changed;
  });
}

/** Deletes a definition; `change` is null when there was none. */
export function deleteTask(
  pool: Pool,
  { tenant, name }: Pick<TaskAuthor, 'tenant' | 'name'>,
  also: AlsoOnChange,
): Promise<TaskChanged> {
  return changeInOrder(pool, async (db, version) => {
    const found = await findTask(db, tenant, name);
    if (found === null) return { row: null, created: false, change: null };
    await run(db, DELETE_TASK, [tenant, name]);
    const { tasks } = await markTenant(db, tenant, version, { tasks: -1, bytes: -bytesIn(found) });
    const changed = { row: null, created: false, change: { version, tasks } };
    await also(db, found, changed);
    return changed;
  });
}

function changeInOrder<T>(pool: Pool, work: (db: Queryable, version: number) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (db) => {
    const [counted] = await run<{ version: number }>(db, COUNT_CHANGE, []);
    return work(db, counted!.version);
  });
}

/** What a tenant has of definitions. */
interface Stock {
  readonly tasks: number;
  readonly bytes: number;
}

async function markTenant(db: Queryable, tenant: string, version: number, more: Stock): Promise<Stock> {
  const values = [tenant, version, more.tasks, more.bytes];
  const [marked] = await run<Stock & Record<string, unknown>>(db, MARK_TENANT, values);
  return marked!;
}

function bytesIn({ definition }: { readonly definition: string }): number {
  return Buffer.byteLength(definition);
}
