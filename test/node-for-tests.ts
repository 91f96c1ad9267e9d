import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../src/core/clock.js';
import { type ConfigInput, resolveConfig } from '../src/core/config.js';
import type { Job } from '../src/core/job.js';
import { type Log, SILENT_LOG } from '../src/core/log.js';
import type { AnyTask } from '../src/core/task.js';
import { type RunningNode, startNode } from '../src/node/start-node.js';
import { type ConnectOptions, connect } from '../src/sdk/connect.js';
import type { Punctual } from '../src/sdk/punctual.js';
import { createOperatorKey } from '../src/store/operator-key.js';
import type { WorkerOptions } from '../src/worker/worker-options.js';
import type { WorkerRuntime } from '../src/worker/worker-runtime.js';
import { createTestDatabase, type TestDatabase } from './database.js';

/** An answer of the API, whatever its status. */
export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

/** What a request may bring. */
export interface Ask {
  /** Sent as JSON; a string or bytes are sent as they are. */
  readonly body?: unknown;
  readonly tenant?: string;
  /** In place of the operator's key; null sends none. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestNodeOptions {
  readonly settings?: ConfigInput;
  readonly clock?: Clock;
  /** Default: one of its own, dropped with the node. */
  readonly database?: TestDatabase;
  readonly log?: Log;
  /** Whether dispatch is paused before the node starts. */
  readonly paused?: boolean;
  /** The folder of the dashboard; default the one of the build, if there is one. */
  readonly dashboard?: string;
}

/** Somebody who talks to a node. */
export abstract class ApiUser {
  abstract ask<T = Record<string, unknown>>(method: string, path: string, ask?: Ask): Promise<Answer<T>>;

  /** Asks for something that must be granted. */
  async get<T>(method: string, path: string, ask: Ask = {}): Promise<T> {
    const { status, body } = await this.ask<T>(method, path, ask);
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  submit(submission: Record<string, unknown>, tenant?: string): Promise<Job> {
    return this.get('POST', '/v1/jobs', { body: submission, ...(tenant !== undefined && { tenant }) });
  }

  job(id: string, tenant?: string): Promise<Job> {
    return this.get('GET', `/v1/jobs/${id}`, tenant === undefined ? {} : { tenant });
  }

  /** The job when it has ended. */
  async ended(id: string, tenant?: string): Promise<Job> {
    for (;;) {
      const job = await this.get<Job>(
        'GET',
        `/v1/jobs/${id}?wait=20s`,
        tenant === undefined ? {} : { tenant },
      );
      if (job.finishedAt !== null) return job;
    }
  }
}

/** A test that fails with a 500 should show why; everything else a node says is expected noise. */
const ERRORS_ONLY: Log = {
  ...SILENT_LOG,
  error: (fields, message) => console.error(message, fields),
};

/** A real node on a database of its own, and everything that talks to it; all of it ends with `stop`. */
export class TestNode extends ApiUser {
  readonly #stops: (() => Promise<unknown>)[] = [];
  #tenants = 0;

  private constructor(
    readonly node: RunningNode,
    readonly database: TestDatabase,
    readonly apiKey: string,
  ) {
    super();
  }

  static async start(options: TestNodeOptions = {}): Promise<TestNode> {
    const database = options.database ?? (await createTestDatabase());
    const { key } = await createOperatorKey(database.url, 'tester');
    // Nodes on one database share it; no folder is made before an artifact comes.
    const artifactStore = join(tmpdir(), `punctual-artifacts-${new URL(database.url).pathname.slice(1)}`);
    const settings: ConfigInput = { databaseUrl: database.url, port: 0, artifactStore, ...options.settings };
    const node = await startNode({
      config: resolveConfig(settings, {}, () => '').config,
      log: options.log ?? ERRORS_ONLY,
      ...(options.clock && { clock: options.clock }),
      ...(options.paused && { paused: true }),
      ...(options.dashboard !== undefined && { dashboard: options.dashboard }),
    });
    const test = new TestNode(node, database, key);
    if (!options.database) test.onStop(() => database.drop());
    test.onStop(() => rm(artifactStore, { recursive: true, force: true }));
    test.onStop(() => node.stop());
    return test;
  }

  get url(): string {
    return this.node.url;
  }

  /** Has something ended before everything that was started earlier. */
  onStop(stop: () => Promise<unknown>): void {
    this.#stops.push(stop);
  }

  /** Ends everything in the opposite order of its start. */
  async stop(): Promise<void> {
    for (let step = this.#stops.pop(); step; step = this.#stops.pop()) await step();
  }

  connect(tenant?: string, options: ConnectOptions = {}): Punctual {
    const punctual = connect({
      url: this.url,
      apiKey: this.apiKey,
      ...(tenant !== undefined && { tenant }),
      ...options,
    });
    this.onStop(() => punctual.close());
    return punctual;
  }

  /** Starts a worker for the tasks and stops it at the end. */
  async work(
    tasks: readonly AnyTask[],
    options: WorkerOptions & { readonly tenant?: string } = {},
  ): Promise<WorkerRuntime> {
    const { tenant, ...rest } = options;
    const worker = this.connect(tenant).worker(tasks, { stopGraceMs: 50, ...rest });
    await worker.start();
    this.onStop(() => worker.stop());
    return worker;
  }

  override async ask<T = Record<string, unknown>>(
    method: string,
    path: string,
    ask: Ask = {},
  ): Promise<Answer<T>> {
    const { body, tenant, key = this.apiKey } = ask;
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(tenant !== undefined && { 'punctual-tenant': tenant }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...ask.headers,
      },
      ...(body !== undefined && {
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    });
    const text = await response.text();
    const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      body: (isJson ? JSON.parse(text) : text) as T,
    };
  }

  /** A tenant of its own for a test that shares the node with others. */
  newTenant(): TestTenant {
    this.#tenants += 1;
    return new TestTenant(this, `tenant-${this.#tenants}`);
  }
}

/** One tenant of a node: everything it asks for, it asks for itself. */
export class TestTenant extends ApiUser {
  constructor(
    readonly test: TestNode,
    readonly tenant: string,
  ) {
    super();
  }

  override ask<T = Record<string, unknown>>(method: string, path: string, ask: Ask = {}): Promise<Answer<T>> {
    return this.test.ask(method, path, { tenant: this.tenant, ...ask });
  }

  connect(): Punctual {
    return this.test.connect(this.tenant);
  }

  work(tasks: readonly AnyTask[], options: WorkerOptions = {}): Promise<WorkerRuntime> {
    return this.test.work(tasks, { ...options, tenant: this.tenant });
  }
}

/** A node that ends with the test that asks for it. */
export async function nodeForTest(options: TestNodeOptions = {}): Promise<TestNode> {
  const test = await TestNode.start(options);
  onTestFinished(() => test.stop(), 30_000);
  return test;
}
