import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { Authentication } from '../api/authentication.js';
import { identityOf } from '../api/caller.js';
import { type NodeContext, nodeContext } from '../api/context.js';
import { clientAddresses } from '../api/http/client-address.js';
import { readBasePath } from '../api/http/dashboard.js';
import { createHttpServer } from '../api/http/server.js';
import { KeyRates } from '../api/key-rates.js';
import { Refusals } from '../api/refusals.js';
import { schemasOf } from '../api/route.js';
import { ROUTES } from '../api/routes.js';
import { SessionCookie } from '../api/session-cookie.js';
import { Transfers } from '../api/transfers.js';
import type { ArtifactStore } from '../artifact/artifact-store.js';
import { openStore } from '../artifact/open-store.js';
import { Membership } from '../cluster/membership.js';
import { PeerCaller } from '../cluster/peer-caller.js';
import { PeerTrust } from '../cluster/peer-trust.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { Loop, logFailure } from '../core/loop.js';
import { compileAhead } from '../core/schemas/validate.js';
import { readMasterKeys, SecretBox } from '../core/secret-box.js';
import { stopParts } from '../core/stop-parts.js';
import { forwardedFrom, isForwarded, signCallerToken, signForwarded, signNodeToken } from '../core/tokens.js';
import { VERSION } from '../core/version.js';
import { CertificateFiles, extraCertificates } from '../host/certificate.js';
import { LoopDelay } from '../host/loop-delay.js';
import { DASHBOARD_FOLDER, readPageFiles } from '../host/page-files.js';
import { findPendingUploads } from '../store/artifacts.js';
import { readClusterState } from '../store/cluster-state.js';
import { addressOf, listen, mustBePrivate } from './listen.js';
import { openShard, type RunningShard } from './shard.js';

/** How often leftovers in the store of artifacts are looked for, and how long nobody must have written to them. */
const SWEEP_EVERY_MS = 3_600_000;
const SWEPT_AFTER_MS = 3_600_000;

/** How long a node that stops still answers, so that whoever asks is sent elsewhere instead of cut off. */
const SEND_AWAY_MS = 100;

export interface NodeOptions {
  readonly config: Config;
  /** Default: random. */
  readonly id?: string;
  readonly log: Log;
  /** Default: the database's clock. A test gives one that it can move. */
  readonly clock?: Clock;
  /** Whether to pause dispatch before this node or any other starts a job. */
  readonly paused?: boolean;
  /** The folder of the built dashboard. */
  readonly dashboard?: string;
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
  /** Whether this node leads a shard at this moment. */
  leads(): boolean;
  /** Hands its terms over, lets requests end, closes everything. */
  stop(): Promise<void>;
}

/** Starts one node: opens its shards, listens, and leads every shard that nobody else leads. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, log, clock, paused = false } = options;
  const id = options.id ?? `node-${randomBytes(6).toString('hex')}`;
  const databaseUrls = [requireDatabaseUrl(config)];
  mustBePrivate(config);
  const certificate = openCertificate(config, log);
  const artifacts = openStore(config);
  const shards: RunningShard[] = [];
  try {
    for (const databaseUrl of databaseUrls) {
      const shard = { id: shards.length, databaseUrl, nodeId: id, config, log, paused, artifacts };
      shards.push(await openShard({ ...shard, ...(clock && { clock }) }));
    }
    return await assemble(options, id, shards as [RunningShard, ...RunningShard[]], certificate, artifacts);
  } catch (error) {
    await Promise.all(shards.map((shard) => shard.stop()));
    throw error;
  }
}

/** The node around its shards. */
async function assemble(
  { config, log, dashboard = DASHBOARD_FOLDER }: NodeOptions,
  id: string,
  shards: readonly [RunningShard, ...RunningShard[]],
  certificate: CertificateFiles | null,
  artifacts: ArtifactStore,
): Promise<RunningNode> {
  const [{ clock, pools }] = shards;
  const { secret } = await readClusterState(pools.hot);
  const self = { id, url: '', version: VERSION };
  const loopDelay = new LoopDelay();
  const trust = new PeerTrust(extraCertificates());
  if (certificate) trust.serve(certificate.current);
  const peers = new PeerCaller(log, () => signNodeToken(secret, id, clock.now()), trust);
  const membership = new Membership({
    ...{ db: pools.leader, self, clock, peers, log },
    onSeen: async () => void (await Promise.all(shards.map((shard) => shard.prepareToLead()))),
  });
  const localKey = `pk_local_${randomBytes(32).toString('base64url')}`;
  const authentication = new Authentication({ keys: pools.leader, secret, clock, log }, localKey);
  const sessionCookie = new SessionCookie(secret, config.insecure);
  const refusals = new Refusals();
  const keyRates = new KeyRates(config.keyRate);
  const context = nodeContext({
    ...{ nodeId: id, config, loopDelay, authentication, refusals, secret, shards, sessionCookie },
    secretBox: secretBoxOf(config),
    artifacts,
    transfers: new Transfers(),
    ownUrl: () => self.url,
    lookAtNodes: () => membership.look(),
    tellOfKeys: () => {
      authentication.lookAgain();
      void membership.tellOfKeys();
    },
  });
  const clientAddress = clientAddresses({
    trustedProxies: config.trustedProxies,
    markedAddress: (mark) => forwardedFrom(secret, mark, clock.now()),
  });
  const server = createHttpServer({
    ...{ node: context, routes: ROUTES, limits: config, log, version: VERSION, defaultTenant: 'default' },
    clientAddress,
    ...(config.keyRate > 0 && { countRequest: (keyId: string) => keyRates.count(keyId) }),
    onRefused: (error) => refusals.note(error),
    authenticate: (bearer) => authentication.authenticate(bearer),
    sessions: {
      cookie: sessionCookie,
      authenticate: (session) => authentication.authenticateSession(session),
    },
    watch: (caller, onInvalid) => authentication.watch(caller, onInvalid),
    forwarding: {
      shards,
      credentialFor: ({ caller }) => {
        const identity = caller && identityOf(caller);
        return identity && signCallerToken(secret, id, identity, clock.now());
      },
      mark: (request) => signForwarded(secret, id, clock.now(), clientAddress(request)),
      isMark: (text) => isForwarded(secret, text, clock.now()),
      trust,
    },
    certificate: certificate?.current ?? null,
    pageFiles: readPageFiles(dashboard),
    basePath: readBasePath(config.basePath),
  });
  await server.ready();
  const port = await listen(server, config);
  self.url = addressOf(config, port);

  loopDelay.start();
  const tending = tendStore(artifacts, shards, config, log).start();
  certificate?.watch((next) => {
    trust.serve(next);
    (server.server as unknown as TlsServer).setSecureContext(next);
  });
  membership.start();
  const { url } = self;
  const host = {
    ...{ url, secret, peers, compileSchemas: () => compileAhead(schemasOf(ROUTES)) },
    tellOfLease: (shard: number) => membership.tellOfLease(shard),
  };
  for (const shard of shards) shard.start(host);
  log.info({ node: id, url }, 'the node listens');

  let stopping: Promise<void> | undefined;
  const stop = async () => {
    const inTurn = async (name: string, work: () => Promise<unknown>) =>
      stopParts({ [name]: { stop: work } }, ([part]) =>
        log.warn({ node: id, part }, 'the node is still stopping'),
      );
    // Those who wait here go elsewhere at once: when the next leader is there, they are too.
    server.endServing();
    context.transfers.close();
    for (const shard of shards) shard.endWaiting();
    const sentAway = pause(SEND_AWAY_MS);
    await inTurn('leadership', () => Promise.all(shards.map((shard) => shard.handOver())));
    await inTurn('membership', () => membership.stop());
    await sentAway;
    await inTurn('requests', () => server.close());
    await inTurn('authentication', () => authentication.close());
    await inTurn('peers', () => peers.close());
    await artifacts.close();
    await tending.stop();
    await loopDelay.stop();
    await certificate?.stop();
    await inTurn('registration', () => membership.leave());
    await inTurn('connections', () => Promise.all(shards.map((shard) => shard.stop())));
    log.info({ node: id }, 'the node has stopped');
  };
  return {
    ...{ id, url, port, context, server, localKey },
    leads: () => shards.some((shard) => shard.currentLeader() !== undefined),
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** Tries the store, if the operator has named one, and removes what broken uploads have left, at the start and from time to time. */
function tendStore(
  artifacts: ArtifactStore,
  shards: readonly RunningShard[],
  { artifactStore }: Config,
  log: Log,
): Loop {
  const areNeeded = async (uploads: readonly string[]) => {
    const pending = await Promise.all(shards.map(({ pool }) => findPendingUploads(pool, uploads)));
    return new Set(pending.flat());
  };
  return new Loop({
    name: 'tend artifacts',
    everyMs: SWEEP_EVERY_MS,
    pass: async () => {
      if (artifactStore !== '') await artifacts.probe();
      // The times of files are those of this machine.
      await artifacts.sweep(Date.now() - SWEPT_AFTER_MS, areNeeded);
    },
    onError: logFailure(log, 'the store of artifacts cannot be used'),
  });
}

function openCertificate({ tlsCert, tlsKey }: Config, log: Log): CertificateFiles | null {
  return tlsCert === '' ? null : new CertificateFiles({ cert: tlsCert, key: tlsKey }, log);
}

function secretBoxOf({ secretKey }: Config): SecretBox | null {
  return secretKey === '' ? null : new SecretBox(readMasterKeys(secretKey)!);
}

function requireDatabaseUrl(config: Config): string {
  if (config.databaseUrl) return config.databaseUrl;
  throw new PunctualError(
    'CONFIGURATION',
    'A node needs a database: give --database-url or PUNCTUAL_DATABASE_URL, or use `punctual up`, which brings its own.',
  );
}
