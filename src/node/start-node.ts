import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { Authentication } from '../api/authentication.js';
import type { NodeContext } from '../api/context.js';
import { EndLines } from '../api/end-lines.js';
import { EndWatch } from '../api/end-watch.js';
import { createHttpServer } from '../api/http/server.js';
import { LocalEnds } from '../api/local-ends.js';
import { LogWriter } from '../api/log-writer.js';
import { ROUTES } from '../api/routes.js';
import { Submitter } from '../api/submitter.js';
import { DatabaseClock } from '../cluster/database-clock.js';
import { HintSender } from '../cluster/hint-sender.js';
import { LeaderEnds } from '../cluster/leader-ends.js';
import { Leadership } from '../cluster/leadership.js';
import { Membership } from '../cluster/membership.js';
import { PeerCaller } from '../cluster/peer-caller.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { News } from '../core/news.js';
import { isForwarded, signForwarded, signNodeToken } from '../core/tokens.js';
import { VERSION } from '../core/version.js';
import { LoopDelay } from '../host/loop-delay.js';
import { databaseTime, readClusterState } from '../store/cluster-state.js';
import { openAll } from '../store/database.js';
import { migrate } from '../store/migrate.js';
import { Names } from '../store/names.js';
import { findEnded } from '../store/read-job.js';
import { VISIBLE_WITHIN_MS } from '../store/submit-jobs.js';
import { Leading } from './leading.js';
import { addressOf, listen } from './listen.js';
import { closePools, openPools, type Pools } from './pools.js';

/** The one shard of this version. */
const SHARD = 0;
/** How long a node that stops still answers, so that whoever asks is sent elsewhere instead of cut off. */
const SEND_AWAY_MS = 100;
/** A dispatcher lets go by itself of all who wait for it when its term ends. */
const NEVER = new AbortController().signal;

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
  /** What its routes work with, for callers in the same process. */
  readonly context: NodeContext;
  readonly server: FastifyInstance;
  /** A key that only this process knows and accepts, for clients embedded in it. */
  readonly localKey: string;
  /** Whether this node leads at this moment. */
  leads(): boolean;
  /** Hands the term over, lets requests end, closes everything. */
  stop(): Promise<void>;
}

/** Starts one node: migrates the database, listens, and leads the shard when nobody else does. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, log } = options;
  const id = options.id ?? `node-${randomBytes(6).toString('hex')}`;
  const databaseUrl = requireDatabaseUrl(config);
  const report = await migrate(databaseUrl, {
    onWait: (reason) => log.warn({ reason }, 'the database is being migrated and waits'),
  });
  if (report.applied.length > 0) log.info({ applied: report.applied }, 'the database was migrated');
  const pools = openPools(config, databaseUrl, id, log);
  try {
    return await assemble(options, id, databaseUrl, pools);
  } catch (error) {
    await closePools(pools);
    throw error;
  }
}

async function assemble(
  options: NodeOptions,
  id: string,
  databaseUrl: string,
  pools: Pools,
): Promise<RunningNode> {
  const { config, log } = options;
  const { leader, hot, pool, patient } = pools;
  const { secret } = await readClusterState(hot);
  const databaseClock = new DatabaseClock(await databaseTime(hot));
  const clock = options.clock ?? databaseClock;
  const self = { id, url: '', version: VERSION };
  const leaderNews = new News();
  const loopDelay = new LoopDelay();

  const token = () => signNodeToken(secret, id, id, clock.now());
  const peers = new PeerCaller(log, token);
  const membership = new Membership({
    ...{ db: leader, self, clock, peers, log },
    // A node that comes to lead has no time to open connections.
    onSeen: async () => {
      if (leadership.current || leader.totalCount >= leader.options.max) return;
      await openAll(leader).catch((error: unknown) =>
        log.debug({ error: messageOf(error) }, 'connections could not be opened ahead of time'),
      );
    },
  });
  const leadership: Leadership = new Leadership({
    databaseUrl,
    shard: SHARD,
    nodeId: id,
    url: () => self.url,
    ttlMs: config.leaseTtl,
    log,
    onTerm: (term) => leading.begin(term),
    onFollowing: () => leaderNews.tell(),
    onReleased: () => membership.tellOfLease(),
    onTime: (now, roundTripMs) => databaseClock.sample(now, roundTripMs),
  });
  const leading = new Leading({
    ...{ log, leadership: () => leadership, leaderNews },
    optionsFor: (term) => ({
      ...{ term, hot: leader, pool, patient, clock, config, log, secret },
      submitTimeoutMs: VISIBLE_WITHIN_MS,
      renounce: (reason, aboveEpoch) => leadership.renounce(term, reason, aboveEpoch),
    }),
    // Whoever waits at another node for a leader need not wait for that node's next look.
    onReady: () => void membership.tellOfLease(),
  });
  const leaderUrl = () => (leading.current ? self.url : leadership.leaderUrl);
  const hints = new HintSender(peers, leaderUrl);
  const submitter = new Submitter({
    ...{ hot, clock, config, log },
    names: new Names(hot, config),
    databaseNow: () => databaseClock.now(),
    express: async (row, names) => (await leading.current?.submit(row, names)) ?? false,
    hint: async (jobs, startBefore) => {
      if (leading.current) await leading.current.hint(jobs, startBefore);
      else hints.send({ jobs, startBefore });
    },
  });
  const ends = new EndWatch({
    ...{ leaderNews, log },
    findEnded: (jobs) => findEnded(hot, jobs),
    onLeaderLost: () => leadership.suspect(),
    open: async (onEnded) => {
      if (leading.current) return new LocalEnds(leading.current, onEnded);
      const known = leadership.leader;
      if (known === null) return null;
      return LeaderEnds.open({ url: known.url, termOver: known.over, token, onEnded });
    },
  });
  const localKey = `pk_local_${randomBytes(32).toString('base64url')}`;
  const authentication = new Authentication({ keys: leader, secret, clock }, localKey);
  const context: NodeContext = {
    ...{ nodeId: id, shard: SHARD, config, clock, log, secret, hot, pool, submitter, ends, keys: leader },
    ...{ loopDelay, authentication },
    endLines: new EndLines(() => leading.current),
    logs: new LogWriter({ hot, pool, config, clock }),
    leader: () => leading.get(),
    currentLeader: () => leading.current,
    lease: () => leadership.lease,
    databaseSilentMs: () => leadership.silentMs,
    lookAtLease: () => leadership.look(),
    lookAtNodes: () => membership.look(),
  };
  const server = createHttpServer({
    ...{ node: context, routes: ROUTES, limits: config, log, version: VERSION, defaultTenant: 'default' },
    authenticate: (bearer) => authentication.authenticate(bearer),
    forwarding: {
      // A request that was about to be forwarded when this node came to lead is carried out here.
      leader: () => (leading.current ? { url: self.url, over: NEVER } : leadership.leader),
      leaderNews,
      onLeaderLost: () => leadership.suspect(),
      credentialFor: (request) =>
        request.headers.authorization === `Bearer ${localKey}`
          ? signNodeToken(secret, id, 'embedded', clock.now())
          : null,
      mark: () => signForwarded(secret, id, clock.now()),
      isMark: (text) => isForwarded(secret, text, clock.now()),
    },
  });
  await server.ready();
  const port = await listen(server, config);
  self.url = addressOf(config, port);

  loopDelay.start();
  membership.start();
  leadership.start();
  log.info({ node: id, url: self.url }, 'the node listens');

  let stopping: Promise<void> | undefined;
  const stop = async () => {
    // Those who wait here go elsewhere at once: when the next leader is there, they are too.
    server.endServing();
    leading.endWaiting();
    ends.close();
    const sentAway = pause(SEND_AWAY_MS);
    await leadership.stop();
    await membership.stop();
    await leading.close();
    await sentAway;
    await server.close();
    await peers.close();
    await loopDelay.stop();
    await membership.leave();
    await closePools(pools);
    log.info({ node: id }, 'the node has stopped');
  };
  return {
    ...{ id, url: self.url, port, context, server, localKey },
    leads: () => leading.current !== undefined,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

function requireDatabaseUrl(config: Config): string {
  if (config.databaseUrl) return config.databaseUrl;
  throw new PunctualError(
    'CONFIGURATION',
    'A node needs a database: give --database-url or PUNCTUAL_DATABASE_URL, or use `punctual up`, which brings its own.',
  );
}
