import pg from 'pg';
import { messageOf, PunctualError } from '../core/errors.js';
import { readerRoleOf } from '../core/reader-role.js';
import { connect } from './migrate.js';

/**
 * The second wall between tenants. What is read for people is read by a database role of its own, to which the policies of
 * the tables show the rows of one tenant only: a statement that forgets its tenant then finds nothing of others.
 *
 * A role belongs to the whole server, is in no dump of a database, and not every node may create one. So it is no part of
 * the migrations: whoever migrates a database makes what is missing, as far as its own rights allow, and says what is not.
 */

/** The tables that the role reads; each has a policy. */
export const WALLED_TABLES = [
  'jobs',
  'later',
  'job_history',
  'job_history_kept',
  'job_logs',
  'claims',
  'keys',
  'schedules',
  'occurrences',
  'tasks',
  'audit',
  'batches',
  'workflows',
  'workflow_definitions',
  'secrets',
  'signing_secrets',
  'steps',
  'edges',
  'origin_limits',
  'artifacts',
] as const;

/** What the role may use beside them. Names of queues are joined to lists of jobs, and a policy makes that slow. */
const QUEUE_COLUMNS = ['id', 'tenant', 'name'] as const;
const FUNCTIONS = [
  'punctual.readable(json)',
  'punctual.error_shape(json)',
  'punctual.error_fingerprint(text, json)',
] as const;

/** Whether reads for people are behind row-level security, and if not, why and what to do. */
export type Wall =
  | { readonly stands: true; readonly role: string }
  | {
      readonly stands: false;
      readonly role: string;
      readonly reason: string;
      /** What an administrator of the server can run. */
      readonly remedy: string;
    };

/** How the role stands; null where a database has no migrations yet, or not this one. */
interface Look {
  readonly role: string;
  readonly user: string;
  readonly hasRole: boolean;
  /** It is no way around the policies, and nobody can log in with it. */
  readonly isFit: boolean;
  /** Nodes may take it on. */
  readonly mayUse: boolean;
  readonly isGranted: boolean;
  /** Tables whose policies somebody has switched off or removed. */
  readonly open: readonly string[];
}

const FIND_OWNER = `
  SELECT pg_get_userbyid(c.relowner) AS owner, current_user::text AS user, row_security_active(c.oid) AS bound
  FROM pg_class c
  WHERE c.oid = to_regclass('punctual.jobs') AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid)`;

/** Before Postgres 16, every member of a role could take it on. */
const TO_USE = `CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END`;

const LOOK = `
  SELECT NOT (r.rolcanlogin OR r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, jobs.relowner, 'USAGE')) AS "isFit",
    pg_has_role(r.oid, ${TO_USE}) AS "mayUse",
    has_schema_privilege(r.oid, jobs.relnamespace, 'USAGE')
      AND ${FUNCTIONS.map((name) => `coalesce(has_function_privilege(r.oid, to_regprocedure('${name}'), 'EXECUTE'), false)`).join(' AND ')}
      AND ${QUEUE_COLUMNS.map((name) => `has_column_privilege(r.oid, 'punctual.queues', '${name}', 'SELECT')`).join(' AND ')}
      AND (SELECT bool_and(has_table_privilege(r.oid, c.oid, 'SELECT')) FROM pg_class c
        WHERE c.relnamespace = jobs.relnamespace AND c.relname = ANY ($2)) AS "isGranted",
    ARRAY(SELECT c.relname::text FROM pg_class c
      WHERE c.relnamespace = jobs.relnamespace AND c.relname = ANY ($2)
        AND NOT (c.relrowsecurity AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid))
      ORDER BY c.relname) AS open
  FROM pg_class jobs, pg_roles r WHERE jobs.oid = to_regclass('punctual.jobs') AND r.rolname = $1`;

async function look(client: pg.Client): Promise<Look | null> {
  const [found] = (await client.query<{ owner: string; user: string; bound: boolean }>(FIND_OWNER)).rows;
  if (!found) return null;
  if (found.bound) throw boundBy(found);
  const role = readerRoleOf(found.owner);
  const { rows } = await client.query<Omit<Look, 'role' | 'user' | 'hasRole'>>(LOOK, [role, WALLED_TABLES]);
  const [state] = rows;
  return {
    ...{ role, user: found.user, hasRole: state !== undefined },
    ...(state ?? { isFit: true, mayUse: false, isGranted: false, open: [] }),
  };
}

/** A node that sees no rows would take the cluster for empty. */
function boundBy({ user, owner }: { readonly user: string; readonly owner: string }): PunctualError {
  const message = `The policies of Punctual's tables bind the database user ${user}, so it would see no jobs: use ${owner}, who owns them.`;
  return new PunctualError('CONFIGURATION', message);
}

const quoted = pg.escapeIdentifier;
const create = ({ role }: Look) => `CREATE ROLE ${quoted(role)} NOLOGIN`;
const join = ({ role, user }: Look) => `GRANT ${quoted(role)} TO ${quoted(user)}`;

/** An arbitrary number: two sessions that grant rights on one table at the same moment would fail. */
const LOCK = 7_301_112_011;

/** A restore without rights (pg_restore --no-acl) lets everybody execute functions, and the role may now use the schema. */
const grant = ({ role }: Look) => {
  const to = `TO ${quoted(role)}`;
  return `
    SELECT pg_advisory_xact_lock(${LOCK});
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA punctual FROM PUBLIC;
    GRANT USAGE ON SCHEMA punctual ${to};
    GRANT SELECT ON ${WALLED_TABLES.map((table) => `punctual.${table}`).join(', ')} ${to};
    GRANT SELECT (${QUEUE_COLUMNS.join(', ')}) ON punctual.queues ${to};
    GRANT EXECUTE ON FUNCTION ${FUNCTIONS.join(', ')} ${to}`;
};

/**
 * What is missing, in the order in which it is made. Another session, also in another database of the server, may make the
 * same at the same moment; so a failure counts only if it is still missing afterwards.
 */
const STEPS: readonly { isDone(found: Look): boolean; sql(found: Look): string }[] = [
  { isDone: (found) => found.hasRole, sql: create },
  // Nothing is given to a role that somebody made for something else.
  { isDone: (found) => found.mayUse || !found.isFit, sql: join },
  { isDone: (found) => found.isGranted || !found.mayUse || !found.isFit, sql: grant },
];

/** Makes what is missing of the wall, as far as the rights of the database user allow. */
export async function raiseWall(databaseUrl: string): Promise<Wall | null> {
  return withConnection(databaseUrl, async (client) => {
    let found = await look(client);
    let failure: string | null = null;
    for (const { isDone, sql } of STEPS) {
      if (found === null || isDone(found)) continue;
      failure = await failureOf(client, sql(found));
      found = await look(client);
      if (found !== null && !isDone(found)) break;
    }
    return found && wallOf(found, failure);
  });
}

/** How the wall stands, without changing anything; null where the database lacks the migration. */
export function findWall(databaseUrl: string): Promise<Wall | null> {
  return withConnection(databaseUrl, async (client) => {
    const found = await look(client);
    return found && wallOf(found, null);
  });
}

async function failureOf(client: pg.Client, sql: string): Promise<string | null> {
  try {
    await client.query(sql);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

function wallOf(found: Look, failure: string | null): Wall {
  const { role, hasRole, isFit, mayUse, isGranted, open } = found;
  const why = (missing: string) => (failure === null ? missing : `${missing} (${failure})`);
  const without = (missing: string, remedy: string): Wall => ({
    ...{ stands: false, role, reason: why(missing), remedy },
  });
  if (!hasRole) return without(`there is no role ${role}`, `${create(found)}; ${join(found)};`);
  if (!isFit) {
    const remedy = `ALTER ROLE ${quoted(role)} NOLOGIN NOSUPERUSER NOBYPASSRLS;`;
    return without(`the role ${role} can log in or is above the policies`, remedy);
  }
  if (!mayUse) return without(`${found.user} may not take on the role ${role}`, `${join(found)};`);
  if (!isGranted) return without(`the role ${role} lacks rights on the tables`, 'punctual db migrate');
  if (open.length > 0) {
    const remedy = open.map((table) => `ALTER TABLE punctual.${table} ENABLE ROW LEVEL SECURITY;`).join(' ');
    return without(`the policies of ${open.join(', ')} are off`, remedy);
  }
  return { stands: true, role };
}

async function withConnection<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(databaseUrl);
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
