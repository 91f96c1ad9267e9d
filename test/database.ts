import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { inject } from 'vitest';

/** A database of its own for one test or file. */
export interface TestDatabase {
  /** As nodes see it. */
  readonly url: string;
  /** Ends every connection to it and removes it. */
  drop(): Promise<void>;
}

/** One on the server that all integration tests share. */
export interface ClonedDatabase extends TestDatabase {
  /** For what only the owner of the server may do. */
  readonly administratorUrl: string;
}

/** SQLSTATE of a template that somebody else is cloning at this moment. */
const OBJECT_IN_USE = '55006';
const TRIES = 200;
const PAUSE_MS = 25;

/** Clones the migrated template on the shared server. */
export async function createTestDatabase(): Promise<ClonedDatabase> {
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`;
  const [url, administratorUrl] = [new URL(inject('nodeUrl')), new URL(inject('serverUrl'))];
  await onServer((client) => cloneTemplate(client, name, url.username));
  for (const each of [url, administratorUrl]) each.pathname = `/${name}`;
  return {
    url: url.href,
    administratorUrl: administratorUrl.href,
    drop: () =>
      onServer(async (client) => {
        await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      }),
  };
}

async function cloneTemplate(client: pg.Client, name: string, owner: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(`CREATE DATABASE ${name} TEMPLATE ${inject('templateDatabase')} OWNER ${owner}`);
      return;
    } catch (error) {
      const busy = error instanceof pg.DatabaseError && error.code === OBJECT_IN_USE;
      if (!busy || attempt === TRIES) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

async function onServer<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: inject('serverUrl') });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
