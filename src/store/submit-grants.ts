import type pg from 'pg';
import { messageOf, PunctualError } from '../core/errors.js';
import { connect } from './migrate.js';

/** Which database roles may submit and cancel jobs by SQL, for which tenants, and as which creator. */

/** That a role may submit and cancel the jobs of a tenant. */
export interface SubmitGrant {
  readonly role: string;
  /** A tenant's id, or `*`. */
  readonly tenant: string;
  /** Recorded as the creator of its jobs. */
  readonly creator: string;
  readonly grantedAt: string;
}

/** A grant of the list, compared with the rights that the role really has. */
export interface ListedGrant extends SubmitGrant {
  /** What the role lacks to make use of it, as after a restore into another server; empty if nothing. */
  readonly missing: readonly string[];
}

interface GrantRow {
  readonly role: string;
  readonly tenant: string;
  readonly creator: string;
  readonly granted_at: string;
}

const COLUMNS = 'role::text AS role, tenant, creator, granted_at';
const FUNCTIONS = [
  'punctual.submit_job(text, json)',
  'punctual.cancel_job(text, uuid)',
  'punctual.cancel_job_of_key(text, text)',
];
const ADD_GRANT = `
  INSERT INTO punctual.submit_grants (role, tenant, creator, granted_at)
  VALUES ($1, $2, $3, floor(extract(epoch FROM clock_timestamp()) * 1000))
  ON CONFLICT (role, tenant) DO UPDATE SET creator = excluded.creator
  RETURNING ${COLUMNS}`;

/** Lets a role submit and cancel jobs of a tenant by SQL, and do nothing else. */
export function grantSubmit(
  databaseUrl: string,
  grant: Pick<SubmitGrant, 'role' | 'tenant' | 'creator'>,
): Promise<SubmitGrant> {
  return inOneTransaction(databaseUrl, async (client) => {
    const { role, tenant, creator } = grant;
    if (!(await hasRole(client, role))) {
      throw new PunctualError('ROLE_NOT_FOUND', `The database has no role ${JSON.stringify(role)}.`);
    }
    const { rows } = await client.query<GrantRow>(ADD_GRANT, [role, tenant, creator]);
    // A restore without rights (pg_restore --no-acl) lets everybody execute functions, and the role may now use the schema.
    await client.query('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA punctual FROM PUBLIC');
    // The schema holds nothing else that this role could use: rights on its tables are the owner's alone.
    await client.query(`GRANT USAGE ON SCHEMA punctual TO ${client.escapeIdentifier(role)}`);
    await client.query(
      `GRANT EXECUTE ON FUNCTION ${FUNCTIONS.join(', ')} TO ${client.escapeIdentifier(role)}`,
    );
    return viewOf(rows[0]!);
  });
}

/** Takes back what was granted to a role, for one tenant or for all; answers with what it had. */
export function revokeSubmit(
  databaseUrl: string,
  role: string,
  tenant: string | undefined,
): Promise<readonly SubmitGrant[]> {
  return inOneTransaction(databaseUrl, async (client) => {
    const { rows } = await client.query<GrantRow>(
      `DELETE FROM punctual.submit_grants WHERE role = $1 AND ($2::text IS NULL OR tenant = $2) RETURNING ${COLUMNS}`,
      [role, tenant ?? null],
    );
    const left = await client.query('SELECT 1 FROM punctual.submit_grants WHERE role = $1', [role]);
    // The role may be gone by now; a right of its own would have kept it from being dropped.
    if (left.rows.length === 0 && (await hasRole(client, role))) {
      await client.query(
        `REVOKE EXECUTE ON FUNCTION ${FUNCTIONS.join(', ')} FROM ${client.escapeIdentifier(role)}`,
      );
      await client.query(`REVOKE USAGE ON SCHEMA punctual FROM ${client.escapeIdentifier(role)}`);
    }
    return rows.map(viewOf);
  });
}

const MOST_GRANTS = 10_000;

/** The grants with the rights that each role has, which may come from other roles; none has any if there is no such role. */
const LIST_GRANTS = `
  SELECT ${COLUMNS}, r.oid IS NOT NULL AS exists, has_schema_privilege(r.oid, 'punctual', 'USAGE') AS may_use,
    ARRAY(SELECT f FROM unnest($1::text[]) f
      WHERE has_function_privilege(r.oid, to_regprocedure(f)::oid, 'EXECUTE') IS NOT TRUE) AS not_callable
  FROM punctual.submit_grants LEFT JOIN pg_roles r ON r.rolname = role
  ORDER BY role, tenant LIMIT ${MOST_GRANTS}`;

interface ListedRow extends GrantRow {
  readonly exists: boolean;
  readonly may_use: boolean | null;
  readonly not_callable: readonly string[];
}

/** What was granted, by role, and what of it the database does not know. */
export function listSubmitGrants(databaseUrl: string): Promise<readonly ListedGrant[]> {
  return inOneTransaction(databaseUrl, async (client) => {
    const { rows } = await client.query<ListedRow>(LIST_GRANTS, [FUNCTIONS]);
    return rows.map((row) => ({ ...viewOf(row), missing: missingOf(row) }));
  });
}

function missingOf({ exists, may_use, not_callable }: ListedRow): string[] {
  if (!exists) return ['the role'];
  return [
    ...(may_use ? [] : ['USAGE on schema punctual']),
    ...not_callable.map((signature) => `EXECUTE on ${signature}`),
  ];
}

async function hasRole(client: pg.Client, role: string): Promise<boolean> {
  return (await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [role])).rows.length > 0;
}

function viewOf({ role, tenant, creator, granted_at }: GrantRow): SubmitGrant {
  return { role, tenant, creator, grantedAt: new Date(Number(granted_at)).toISOString() };
}

/** SQLSTATEs of a table or function that does not exist, and of a missing right. */
const [NO_TABLE, NO_RIGHT] = ['42P01', '42501'];

async function inOneTransaction<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(databaseUrl);
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    const value = await work(client);
    await client.query('COMMIT');
    return value;
  } catch (error) {
    throw explain(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function explain(error: unknown): unknown {
  const { code } = error as { readonly code?: string };
  if (code === NO_TABLE) {
    const message = 'The database lacks migrations: run `punctual db migrate`.';
    return new PunctualError('CONFIGURATION', message, { cause: error });
  }
  if (code !== NO_RIGHT) return error;
  const message = `Only the owner of Punctual's schema can do this (${messageOf(error)}): give the URL that nodes use.`;
  return new PunctualError('FORBIDDEN', message, { cause: error, hint: null });
}
