import pg from 'pg';
import { readerRoleOf } from '../core/reader-role.js';

/** The role that nodes use: it owns the objects in the database and has no rights on the server. */
export const NODE_ROLE = 'punctual_node';

const WITHIN_MS = 10_000;

const MAKE_ROLE = `
  DO $$ BEGIN
    IF to_regrole('${NODE_ROLE}') IS NULL THEN CREATE ROLE ${NODE_ROLE}; END IF;
  END $$`;

const ATTRIBUTES = 'LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS';

/** The role that nodes take on to read for people: see store/tenant-wall.ts. They may not create one. */
const READER = readerRoleOf(NODE_ROLE);
const MAKE_READER = `
  DO $$ BEGIN
    IF to_regrole('${READER}') IS NULL THEN CREATE ROLE ${READER} NOLOGIN; END IF;
    IF NOT pg_has_role('${NODE_ROLE}', '${READER}', 'MEMBER') THEN GRANT ${READER} TO ${NODE_ROLE}; END IF;
  END $$`;

/**
 * Gives the role everything that the superuser owns in this database: in a data folder of an older version, where
 * nodes worked as the superuser, that is every object. Sequences of columns follow their tables; objects of
 * extensions keep their owner.
 */
const HAND_OVER = `
  DO $$
  DECLARE command text;
  BEGIN
    FOR command IN
      SELECT format('ALTER SCHEMA %I OWNER TO ${NODE_ROLE}', nspname)
      FROM pg_namespace
      WHERE nspowner = current_user::regrole AND nspname !~ '^pg_' AND nspname <> 'information_schema'
      UNION ALL
      SELECT format('ALTER TABLE %s OWNER TO ${NODE_ROLE}', c.oid::regclass)
      FROM pg_class c
      WHERE c.relowner = current_user::regrole AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'
        AND NOT EXISTS (
          SELECT 1
          FROM pg_depend d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
            AND (d.deptype = 'e' OR c.relkind = 'S' AND d.deptype IN ('a', 'i')))
      UNION ALL
      SELECT format('ALTER ROUTINE %s OWNER TO ${NODE_ROLE}', p.oid::regprocedure)
      FROM pg_proc p
      WHERE p.proowner = current_user::regrole
        AND p.pronamespace::regnamespace::text !~ '^(pg_|information_schema$)'
        AND NOT EXISTS (
          SELECT 1
          FROM pg_depend d
          WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
      EXECUTE command;
    END LOOP;
    IF (SELECT datdba
        FROM pg_database WHERE datname = current_database()) = current_user::regrole THEN
      EXECUTE format('ALTER DATABASE %I OWNER TO ${NODE_ROLE}', current_database());
    END IF;
  END $$`;

/** Creates the roles if necessary, sets the password of nodes, and makes their role the owner of the objects in the database. */
export async function prepareNodeRole(administratorUrl: string, password: string): Promise<void> {
  const client = new pg.Client({
    connectionString: administratorUrl,
    connectionTimeoutMillis: WITHIN_MS,
    statement_timeout: WITHIN_MS,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    // The server logs statements that fail, and one of these contains a password.
    await client.query('SET log_min_error_statement = panic');
    await client.query('BEGIN');
    await client.query(MAKE_ROLE);
    await client.query(`ALTER ROLE ${NODE_ROLE} ${ATTRIBUTES} PASSWORD '${password}'`);
    await client.query(MAKE_READER);
    await client.query(HAND_OVER);
    await client.query('COMMIT');
  } finally {
    await client.end().catch(() => undefined);
  }
}
