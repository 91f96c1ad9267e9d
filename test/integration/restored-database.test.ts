import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import {
  type EmbeddedPostgres,
  removeEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/embedded/embedded-postgres.js';
import { migrate } from '../../src/store/migrate.js';
import { TestNode, type TestTenant } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { temporaryFolder } from '../temporary-folder.js';

/** With owners and modes: the server's files may belong to an account of its own. */
const copy = (from: string, to: string) => promisify(execFile)('cp', ['-a', from, to]);

/** A server whose files can be exchanged for an older copy of themselves, as a restore or a failover does. */
class RestorableServer {
  #server!: EmbeddedPostgres;

  private constructor(private readonly folder: string) {}

  static async start(): Promise<RestorableServer> {
    const server = new RestorableServer(await temporaryFolder());
    await server.#start();
    onTestFinished(async () => {
      await server.#server.stop();
      await removeEmbeddedPostgres(server.folder);
    }, 30_000);
    return server;
  }

  get url(): string {
    return this.#server.url;
  }

  /** Copies the files of the server, which is away meanwhile. */
  async copy(): Promise<void> {
    await this.#server.stop();
    await copy(this.#files, this.#copied);
    await this.#start();
  }

  /** Everything since the copy is lost. */
  async restore(): Promise<void> {
    await this.#server.stop();
    await rm(this.#files, { recursive: true });
    await copy(this.#copied, this.#files);
    await this.#start();
  }

  async #start(): Promise<void> {
    this.#server = await startEmbeddedPostgres({ dataFolder: this.folder, settings: { fsync: 'off' } });
  }

  get #files(): string {
    return join(this.#server.home, 'postgres');
  }

  get #copied(): string {
    return join(this.folder, 'copied');
  }
}

/** Asks until it is granted: the node finds its way back to the database by itself. */
async function persist<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Error) || !/answered 503/.test(error.message) || tries === 400) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

it('after a restore that lost commits, names that went with them lead nobody astray', async () => {
  const server = await RestorableServer.start();
  await migrate(server.url);
  const node = await TestNode.start({ database: { url: server.url, drop: async () => undefined } });
  onTestFinished(() => node.stop(), 30_000);
  const ours = node.newTenant();
  const theirs = node.newTenant();
  const submit = (by: TestTenant, queue: string) => persist(() => by.submit({ task: 'work', queue }));
  const register = (by: TestTenant, queue: string) =>
    persist(() => ProtocolWorker.register(by, { queues: [queue] }));

  await submit(ours, 'before');
  await register(ours, 'before');
  await server.copy();
  await submit(ours, 'lost');
  const { epoch: lostEpoch } = (await register(ours, 'lost')).welcome;
  await server.restore();

  // The number that stood for our queue stands for theirs from now on.
  const theirJob = await submit(theirs, 'another');
  const ourJob = await submit(ours, 'lost');
  const ourWorker = await register(ours, 'lost');
  const theirWorker = await register(theirs, 'another');
  const claimed = await ourWorker.claimOne();
  expect([claimed.jobId, claimed.tenant]).toEqual([ourJob.id, ours.tenant]);
  expect((await theirWorker.claimOne()).jobId).toBe(theirJob.id);
  // The restored lease is behind what this node has held; no epoch may stand for two of its terms.
  expect(ourWorker.welcome.epoch).toBeGreaterThan(lostEpoch);
}, 90_000);
