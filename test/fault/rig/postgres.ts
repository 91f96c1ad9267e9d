import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import {
  type EmbeddedPostgres,
  removeEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../src/embedded/embedded-postgres.js';
import type { Death } from '../history.js';
import { monotonic } from '../monotonic.js';

/** Enough for all nodes, and few enough that a fault uses all of them up in a moment. */
const MAX_CONNECTIONS = 70;

/** Servers that run; ended with the harness, however it ends. */
const running = new Set<Postgres>();
process.on('exit', () => {
  for (const postgres of running) postgres.abandon();
});

/** The database server of a run: durable, on disk, and killed now and then. */
export class Postgres {
  #server!: EmbeddedPostgres;
  /** Called when the server has ended although nobody had told it to; it is started again. */
  onDeath: (death: Death) => void = () => undefined;
  #onExit: () => void = () => this.#died();

  private constructor(private readonly folder: string) {}

  static async start(folder: string): Promise<Postgres> {
    const postgres = new Postgres(folder);
    await postgres.#start();
    return postgres;
  }

  /** Address for nodes, past all proxies. */
  get url(): string {
    return this.#server.url;
  }

  get port(): number {
    return this.#server.port;
  }

  /** Kills the server as a power cut would and starts it again; resolves with how long it was away. */
  async crash(how: 'SIGKILL' | 'SIGQUIT'): Promise<number> {
    const begin = monotonic();
    await this.#kill(how);
    await this.#start();
    return monotonic() - begin;
  }

  /** Makes a copy of the database as it is now, with the server away for as long as that takes. */
  async copy(): Promise<void> {
    const before = Date.now();
    const client = await this.connect();
    // The copy begins at this checkpoint, so that it needs no older log.
    await client.query('CHECKPOINT').finally(() => client.end());
    running.delete(this);
    await this.#server.stop();
    await rm(this.#copy, { recursive: true, force: true });
    await mkdir(join(this.#copy, 'pg_wal'), { recursive: true, mode: 0o700 });
    const files = (await pathsIn(this.#files)).filter((path) => basename(path) !== 'pg_wal');
    await copyInto(this.#copy, files);
    const log = await pathsIn(join(this.#files, 'pg_wal'));
    const isNeeded = await Promise.all(log.map(async (path) => (await stat(path)).mtimeMs >= before));
    await copyInto(
      join(this.#copy, 'pg_wal'),
      log.filter((path, index) => isNeeded[index] || !isSegment(path)),
    );
    await this.#start();
  }

  /** Goes back to the copy: whatever was written after it has never been. */
  async restore(): Promise<void> {
    await this.#kill('SIGQUIT');
    await rm(this.#files, { recursive: true, force: true });
    await rename(this.#copy, this.#files);
    await this.#start();
  }

  get #files(): string {
    return join(this.#server.home, 'postgres');
  }

  get #copy(): string {
    return join(this.#server.home, 'postgres-copy');
  }

  /** A connection of the harness; its loss is no news. */
  async connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#server.administratorUrl,
      application_name: 'fault observer',
      connectionTimeoutMillis: 5_000,
      query_timeout: 30_000,
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  /** Ends the server without waiting for it. */
  abandon(): void {
    process.kill(this.#postmaster(), 'SIGQUIT');
  }

  async remove(): Promise<void> {
    running.delete(this);
    await this.#server.stop();
    await removeEmbeddedPostgres(this.folder);
  }

  async #kill(how: 'SIGKILL' | 'SIGQUIT'): Promise<void> {
    running.delete(this);
    const gone = new Promise<void>((resolve) => {
      this.#onExit = resolve;
    });
    process.kill(this.#postmaster(), how);
    await gone;
    await this.#server.stop();
    this.#onExit = () => this.#died();
  }

  #died(): void {
    running.delete(this);
    this.onDeath({ member: 'postgres', at: monotonic(), detail: 'the server ended by itself' });
    void this.#server.stop().then(() => this.#start());
  }

  async #start(): Promise<void> {
    this.#server = await startEmbeddedPostgres({
      dataFolder: this.folder,
      settings: { max_connections: String(MAX_CONNECTIONS) },
      onUnexpectedExit: () => this.#onExit(),
    });
    running.add(this);
  }

  #postmaster(): number {
    const file = readFileSync(join(this.#files, 'postmaster.pid'), 'utf8');
    return Number(file.split('\n')[0]);
  }
}

/** Whoever starts the server gives the copy to the account that it runs under. */
async function copyInto(folder: string, paths: readonly string[]): Promise<void> {
  await promisify(execFile)('cp', ['-Rp', ...paths, folder]);
}

async function pathsIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).map((name) => join(folder, name));
}

/** Whether a path in the folder of the log is a piece of it, by its name of 24 digits. */
function isSegment(path: string): boolean {
  return /[0-9A-F]{24}$/.test(path);
}
