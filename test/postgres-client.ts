import pg from 'pg';

/** Runs something on a connection of its own, as another program beside the node would. */
export async function withClient<T>(
  databaseUrl: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * How many statements of this database wait for locks. A transaction sees the sessions as they were when it first looked, so
 * one that was opened since would not be counted.
 */
export async function lockWaits(client: pg.Client): Promise<number> {
  await client.query('SELECT pg_stat_clear_snapshot()');
  const { rows } = await client.query(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows[0].n;
}

/** The number of rows in each of the tables that hold jobs. */
export function countPlaces(databaseUrl: string): Promise<Record<Place, number>> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query(
      `SELECT (SELECT count(*)::int FROM punctual.jobs) AS live, (SELECT count(*)::int FROM punctual.later) AS later,
         (SELECT count(*)::int FROM punctual.job_history) AS history,
         (SELECT count(*)::int FROM punctual.claims) AS claims, (SELECT count(*)::int FROM punctual.keys) AS keys`,
    );
    return rows[0];
  });
}

type Place = 'live' | 'later' | 'history' | 'claims' | 'keys';
