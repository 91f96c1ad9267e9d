import type { Postgres } from './postgres.js';

/**
 * The database's clock as everybody sees it who asks for it by its plain name: the true one, or one that was set back. A
 * function of the same name comes before Postgres's own in the search path of the database, and by how much it is wrong is
 * a setting, which sessions take over when the server tells them to look again.
 */
const CLOCK = `
  CREATE SCHEMA fault;
  -- Nodes are an ordinary role, and what the triggers of the harness write is written by them.
  GRANT USAGE ON SCHEMA fault TO PUBLIC;
  ALTER DEFAULT PRIVILEGES IN SCHEMA fault GRANT ALL ON TABLES TO PUBLIC;
  ALTER DEFAULT PRIVILEGES IN SCHEMA fault GRANT ALL ON SEQUENCES TO PUBLIC;
  CREATE FUNCTION fault.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT pg_catalog.clock_timestamp() - coalesce(current_setting('fault.clock_back', true), '0')::interval
  $$;
  DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = fault, pg_catalog, public', current_database());
  END $$`;

/** To be done before any node connects. */
export async function installClock(postgres: Postgres): Promise<void> {
  const client = await postgres.connect();
  await client.query(CLOCK).finally(() => client.end());
}

/** Sets the clock back by so much from the true time; zero sets it right. */
export async function setClockBack(postgres: Postgres, ms: number): Promise<void> {
  const client = await postgres.connect();
  try {
    await client.query(`ALTER SYSTEM SET fault.clock_back = '${ms} milliseconds'`);
    await client.query('SELECT pg_reload_conf()');
  } finally {
    await client.end();
  }
}
