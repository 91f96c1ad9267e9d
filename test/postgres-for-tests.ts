import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { removeEmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded/embedded-postgres.js';
import { migrate } from '../src/store/migrate.js';
import { raiseWall } from '../src/store/tenant-wall.js';
import { removeAbandonedFolders, temporaryFolder } from './temporary-folder.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Address of the server that all integration tests share, with the right to do anything on it. */
    readonly serverUrl: string;
    /** The same for the role that nodes use, which owns what is in its databases and nothing else. */
    readonly nodeUrl: string;
    /** A migrated, empty database to clone. */
    readonly templateDatabase: string;
  }
}

const TEMPLATE = 'punctual_template';

/** Nothing has to survive a power cut, and nobody guesses passwords, which take most of the time of connecting to check. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '1GB',
  scram_iterations: '1',
  max_connections: '400',
};

/**
 * Starts one server for all integration tests. Its data is thrown away, so it need not survive a power cut;
 * tests about durability start a server of their own.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeAbandonedFolders();
  const dataFolder = await temporaryFolder();
  const server = await startEmbeddedPostgres({ dataFolder, settings: SETTINGS });
  const template = new URL(server.url);
  template.pathname = `/${TEMPLATE}`;
  const { username, password } = new URL(server.administratorUrl);
  const client = new pg.Client({ connectionString: server.administratorUrl });
  await client.connect();
  await client.query(`ALTER ROLE ${username} PASSWORD '${password}'`);
  await client.query(`CREATE DATABASE ${TEMPLATE} OWNER ${template.username}`);
  await client.end();
  await migrate(template.href);
  await raiseWall(template.href);
  project.provide('serverUrl', server.administratorUrl);
  project.provide('nodeUrl', server.url);
  project.provide('templateDatabase', TEMPLATE);
  return async () => {
    await server.stop();
    await removeEmbeddedPostgres(dataFolder);
  };
}
