import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/embedded/embedded-postgres.js';
import { removeEmbeddedPostgres } from '../../../src/embedded/remove.js';
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

  /** Address with user and password, past all proxies. */
  get url(): string {
    return this.#server.url;
  }

  get port(): number {
    return this.#server.port;
  }

  /** Kills the server as a power cut would and starts it again; resolves with how long it was away. */
  async crash(how: 'SIGKILL' | 'SIGQUIT'): Promise<number> {
    const begin = monotonic();
    running.delete(this);
    const gone = new Promise<void>((resolve) => {
      this.#onExit = resolve;
    });
    process.kill(this.#postmaster(), how);
    await gone;
    await this.#server.stop();
    await this.#start();
    this.#onExit = () => this.#died();
    return monotonic() - begin;
  }

  /** A connection of the harness; its loss is no news. */
  async connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.url,
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
    const file = readFileSync(join(this.#server.home, 'postgres', 'postmaster.pid'), 'utf8');
    return Number(file.split('\n')[0]);
  }
}
