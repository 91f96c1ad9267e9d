import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as EmbeddedPostgres from '../../src/embedded/embedded-postgres.js';
import type * as Sdk from '../../src/index.js';
import type * as Server from '../../src/server.js';
import type * as Partitions from '../../src/store/partitions.js';
import type * as Exec from '../../src/worker/runners/exec.js';
import type * as Options from '../../src/worker/worker-options.js';
import { repository } from './repository.js';

/**
 * The built product, as its users import it. Only the embedded Postgres comes from within, because the server is
 * shared with the peers, and what makes tables for days that are over, and the runner of programs.
 */

async function load<Module>(...path: string[]): Promise<Module> {
  return (await import(pathToFileURL(join(repository, 'dist', ...path)).href)) as Module;
}

export const loadSdk = () => load<typeof Sdk>('index.js');
export const loadServer = () => load<typeof Server>('server.js');
export const loadPostgres = () => load<typeof EmbeddedPostgres>('embedded', 'embedded-postgres.js');

export const loadPartitions = () => load<typeof Partitions>('store', 'partitions.js');

/** The runner of programs, without a worker around it. */
export async function loadExec() {
  const [{ ExecRunner }, { resolveWorkerOptions }, { testContext }] = await Promise.all([
    load<typeof Exec>('worker', 'runners', 'exec.js'),
    load<typeof Options>('worker', 'worker-options.js'),
    loadSdk(),
  ]);
  return { ExecRunner, resolveWorkerOptions, testContext };
}

/** The program that `bin/punctual` is. */
export const PROGRAM = join(repository, 'bin', 'punctual');

export const productVersion: string = (
  JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
).version;
