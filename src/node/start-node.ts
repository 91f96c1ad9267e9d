import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { NodeContext } from '../api/context.js';
import { createHttpServer } from '../api/http/server.js';
import { Submitter } from '../api/submitter.js';
import { Attempts } from '../api/use-cases/attempts.js';
import { Authentication } from '../api/use-cases/authentication.js';
import { Cluster } from '../api/use-cases/cluster.js';
import { Jobs } from '../api/use-cases/jobs.js';
import { Queues } from '../api/use-cases/queues.js';
import { WorkerSessions } from '../api/use-cases/workers.js';
import type { HealthView, UseCases } from '../api/use-cases.js';
import { DatabaseClock } from '../cluster/database-clock.js';
import { Leadership } from '../cluster/leadership.js';
import type { Term } from '../cluster/term.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { Loop } from '../core/loop.js';
import { VERSION } from '../core/version.js';
import { databaseTime, forgetNode, readClusterState, seeNode } from '../store/cluster-state.js';
import { openPool, type Pool, type PoolOptions } from '../store/database.js';
import { migrate } from '../store/migrate.js';
import { Names } from '../store/names.js';
import { Leading } from './leading.js';

/** The one shard of this version. */
const SHARD = 0;
const SEEN_EVERY_MS = 5_000;
/** Deadline of a submission's statement; the look-back reaches at least this far. */
const SUBMIT_TIMEOUT_MS = 5_000;

export interface NodeOptions {
  readonly config: Config;
  /** Default: random. */
  readonly id?: string;
  readonly log: Log;
  /** Default: the database's clock. A test gives one that it can move. */
  readonly clock?: Clock;
}

export interface RunningNode {
  readonly id: string;
  readonly url: string;
  readonly port: number;
  readonly useCases: UseCases;
  readonly server: FastifyInstance;
  /** A key that only this process knows and accepts, for clients embedded in it. */
  readonly localKey: string;
  /** Hands the term over, lets requests end, closes everything. */
  stop(): Promise<void>;
}

/** Starts one node: migrates the database, listens, and leads the shard when nobody else does. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, log } = options;
  const id = options.id ?? `node-${randomBytes(6).toString('hex')}`;
  const databaseUrl = requireDatabaseUrl(config);
  const report = await migrate(databaseUrl);
  if (report.applied.length > 0) log.info({ applied: report.applied }, 'the database was migrated');
  const pools = openPools(config, databaseUrl, id, log);
  try {
    return await assemble(options, id, databaseUrl, pools);
  } catch (error) {
    await Promise.all([pools.hot.end(), pools.pool.end()]);
    throw error;
  }
}

interface Pools {
  readonly hot: Pool;
  readonly pool: Pool;
}

function openPools(config: Config, databaseUrl: string, id: string, log: Log): Pools {
  const half = Math.max(2, Math.floor(config.databaseConnections / 2));
  // All deadlines lie below the lease's TTL: a leader that hangs in a statement must not outlive its term.
  const deadline = Math.min(SUBMIT_TIMEOUT_MS, Math.floor(config.leaseTtl * 0.8));
  const common: Omit<PoolOptions, 'hot' | 'applicationName'> = {
    max: half,
    statementTimeoutMs: deadline,
    lockTimeoutMs: Math.floor(deadline / 2),
    idleInTransactionTimeoutMs: deadline,
    onIdleError: (error) => log.debug({ error: error.message }, 'an idle database connection was lost'),
  };
  return {
    hot: openPool(databaseUrl, { ...common, hot: true, applicationName: `punctual ${id}` }),
    pool: openPool(databaseUrl, {
      ...common,
      hot: false,
      applicationName: `punctual ${id}`,
      statementTimeoutMs: 30_000,
    }),
  };
}

async function assemble(
  options: NodeOptions,
  id: string,
  databaseUrl: string,
  pools: Pools,
): Promise<RunningNode> {
  const { config, log } = options;
  const { hot, pool } = pools;
  const { secret } = await readClusterState(hot);
  const databaseClock = new DatabaseClock(await databaseTime(hot));
  const clock = options.clock ?? databaseClock;
  let url = '';

  const leadership: Leadership = new Leadership({
    databaseUrl,
    shard: SHARD,
    nodeId: id,
    url: () => url,
    ttlMs: config.leaseTtl,
    log,
    onTerm: (term) => leading.begin(term),
    onTime: (now) => databaseClock.sample(now),
  });
  const leading = new Leading(log, (term: Term) => ({
    term,
    hot,
    pool,
    clock,
    config,
    log,
    secret,
    submitTimeoutMs: SUBMIT_TIMEOUT_MS,
    renounce: (reason) => leadership.renounce(term, reason),
  }));

  const submitter = new Submitter({
    hot,
    names: new Names(hot),
    clock,
    config,
    log,
    hint: async (jobs, startBefore) => leading.current?.hint(jobs, startBefore),
  });
  const context: NodeContext = {
    nodeId: id,
    shard: SHARD,
    config,
    clock,
    log,
    secret,
    hot,
    pool,
    submitter,
    leader: () => leading.get(),
    currentLeader: () => leading.current,
    lease: () => leadership.lease,
  };
  const localKey = `pk_local_${randomBytes(32).toString('base64url')}`;
  const useCases = buildUseCases(context, leading, localKey);
  const server = createHttpServer({
    useCases,
    limits: config,
    log,
    version: VERSION,
    defaultTenant: 'default',
  });
  await server.ready();
  const port = await listen(server, config);
  url =
    config.advertiseUrl || `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`;

  const membership = new Loop({
    name: 'membership',
    everyMs: SEEN_EVERY_MS,
    pass: () => seeNode(pool, { id, url, version: VERSION }, clock.now()),
    onError: (loop, error) =>
      log.warn({ loop, error: messageOf(error) }, 'this node could not be registered'),
  }).start();
  leadership.start();
  log.info({ node: id, url }, 'the node listens');

  let stopping: Promise<void> | undefined;
  const stop = async () => {
    await membership.stop();
    await leadership.stop();
    await leading.close();
    await server.close();
    await forgetNode(pool, id).catch(() => undefined);
    await Promise.all([hot.end(), pool.end()]);
    log.info({ node: id }, 'the node has stopped');
  };
  return {
    id,
    url,
    port,
    useCases,
    server,
    localKey,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

function buildUseCases(context: NodeContext, leading: Leading, localKey: string): UseCases {
  const authentication = new Authentication(context, localKey);
  return {
    jobs: new Jobs(context),
    attempts: new Attempts(context),
    workers: new WorkerSessions(context),
    queues: new Queues(context),
    cluster: new Cluster(context),
    authenticate: (bearer) => authentication.authenticate(bearer),
    ready: () => checkReady(context, leading),
  };
}

async function checkReady(context: NodeContext, leading: Leading): Promise<HealthView> {
  const database = await databaseTime(context.pool).then(
    () => ({ ok: true, detail: 'answers' }),
    (error: unknown) => ({ ok: false, detail: messageOf(error) }),
  );
  const leader = await leading.get().then(
    () => ({ ok: true, detail: 'this node leads' }),
    () => ({ ok: false, detail: 'no leader at the moment' }),
  );
  return { ok: database.ok && leader.ok, checks: { database, leader } };
}

async function listen(server: FastifyInstance, config: Config): Promise<number> {
  try {
    await server.listen({ host: config.host, port: config.port });
  } catch (error) {
    await server.close();
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EADDRINUSE') {
      throw new PunctualError(
        'PORT_IN_USE',
        `Port ${config.port} on ${config.host} is taken; choose another with --port.`,
        {
          cause: error,
        },
      );
    }
    throw new PunctualError(
      'CONFIGURATION',
      `Cannot listen on ${config.host}:${config.port}: ${messageOf(error)}.`,
      {
        cause: error,
      },
    );
  }
  return (server.server.address() as AddressInfo).port;
}

function requireDatabaseUrl(config: Config): string {
  if (config.databaseUrl) return config.databaseUrl;
  throw new PunctualError(
    'CONFIGURATION',
    'A node needs a database: give --database-url or PUNCTUAL_DATABASE_URL, or use `punctual up`, which brings its own.',
  );
}
