import { EndLines } from '../api/end-lines.js';
import { type EndSource, EndWatch } from '../api/end-watch.js';
import { EventFeeds } from '../api/event-feeds.js';
import { EventLines } from '../api/event-lines.js';
import { LocalEnds } from '../api/local-ends.js';
import { LocalEvents } from '../api/local-events.js';
import { LogWriter } from '../api/log-writer.js';
import { FIGURES_PATH, SUBMISSIONS_PATH } from '../api/peers.js';
import type { Shard } from '../api/shard.js';
import { type Asked, SubmissionRates } from '../api/submission-rates.js';
import { Submitter } from '../api/submitter.js';
import { TenantQuotas } from '../api/tenant-quotas.js';
import type { ArtifactStore } from '../artifact/artifact-store.js';
import { DatabaseClock } from '../cluster/database-clock.js';
import { HintSender } from '../cluster/hint-sender.js';
import type { KnownLeader } from '../cluster/leader-elsewhere.js';
import { LeaderEnds } from '../cluster/leader-ends.js';
import { LeaderEvents } from '../cluster/leader-events.js';
import { Leadership } from '../cluster/leadership.js';
import type { PeerCaller } from '../cluster/peer-caller.js';
import type { Term } from '../cluster/term.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { messageOf } from '../core/errors.js';
import type { EventReceiver, EventSource } from '../core/event-source.js';
import type { Figures } from '../core/figures.js';
import type { Log } from '../core/log.js';
import { News } from '../core/news.js';
import { Recent } from '../core/recent.js';
import { SubmissionTotals } from '../core/submission-rate.js';
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import { FIGURES_AGE_MS } from '../dispatch/leader-figures.js';
import { databaseTime } from '../store/cluster-state.js';
import { openAll, type Pool, type SettingsBy } from '../store/database.js';
import type { LeaseView } from '../store/lease.js';
import { migrate, settingsThrough } from '../store/migrate.js';
import { Names } from '../store/names.js';
import { pauseBeforeStart } from '../store/pause-before-start.js';
import { findEnded } from '../store/read-job.js';
import { VISIBLE_WITHIN_MS } from '../store/submit-jobs.js';
import { TaskDefinitions } from '../store/task-definitions.js';
import { TenantReads } from '../store/tenant-reads.js';
import { raiseWall } from '../store/tenant-wall.js';
import { closePools, openPools, type Pools } from './pools.js';
import { RarerTries, Rehearsal } from './rehearsal.js';
import { ShardLeader } from './shard-leader.js';

/** A dispatcher lets go by itself of all who wait for it when its term ends. */
const NEVER = new AbortController().signal;

interface ShardOptions {
  readonly id: number;
  readonly databaseUrl: string;
  readonly nodeId: string;
  readonly config: Config;
  readonly log: Log;
  /** Where the bytes of artifacts are. */
  readonly artifacts: ArtifactStore;
  /** Default: the database's clock. */
  readonly clock?: Clock;
  /** Whether to pause dispatch before anybody leads. */
  readonly paused?: boolean;
}

/** What a shard needs of its node to deal with the other nodes. */
interface ShardHost {
  /** Where the other nodes reach this one. */
  readonly url: string;
  /** By which the nodes of the cluster sign tokens. */
  readonly secret: Buffer;
  readonly peers: PeerCaller;
  /** Tells the other nodes that the lease of a shard has changed. */
  tellOfLease(shard: number): Promise<void>;
  /** Compiles the schemas of what clients and workers send. */
  compileSchemas(): Promise<void>;
}

/** Migrates a database and opens it as a shard, which takes part in leading once it is started. */
export async function openShard(options: ShardOptions): Promise<RunningShard> {
  const { id, databaseUrl, nodeId, config, log } = options;
  const settingsBy = await connectionSettings(options);
  const report = await migrate(databaseUrl, {
    onWait: (reason) => log.warn({ shard: id, reason }, 'the database is being migrated and waits'),
  });
  if (report.applied.length > 0)
    log.info({ shard: id, applied: report.applied }, 'the database was migrated');
  const readerRole = await findReader(options);
  if (options.paused) await pauseBeforeStart(databaseUrl, settingsBy);
  const pools = openPools(config, databaseUrl, nodeId, log, settingsBy);
  try {
    const clock = new DatabaseClock(await databaseTime(pools.hot));
    return new RunningShard({ ...options, settingsBy, readerRole }, pools, clock);
  } catch (error) {
    await closePools(pools);
    throw error;
  }
}

/** How connections get their settings; refuses a pooler that keeps no sessions. */
async function connectionSettings({ id, databaseUrl, log }: ShardOptions): Promise<SettingsBy> {
  const settingsBy = await settingsThrough(databaseUrl);
  if (settingsBy === 'statement') {
    const message =
      'the database is behind a pooler in session mode: a takeover waits until the lease expires';
    log.warn({ shard: id }, message);
  }
  return settingsBy;
}

/** The role that reads for people; null, and a warning that says what to do, where there is no row-level security. */
async function findReader({ id, databaseUrl, log }: ShardOptions): Promise<string | null> {
  const wall = await raiseWall(databaseUrl);
  if (wall === null || wall.stands) return wall?.role ?? null;
  const { reason, remedy } = wall;
  log.warn(
    { shard: id, reason, remedy },
    'reads for people are not behind row-level security; have an administrator of the database run the remedy, and restart',
  );
  return null;
}

/** A shard as its node runs it: its connections, its leadership, and the dispatcher or the way to it. */
export class RunningShard implements Shard {
  readonly id: number;
  readonly clock: Clock;
  readonly hot: Pool;
  readonly pool: Pool;
  readonly reads: TenantReads;
  readonly leaderNews = new News();
  readonly tasks: TaskDefinitions;
  readonly submitter: Submitter;
  readonly quotas: TenantQuotas;
  readonly rates = new SubmissionRates((asked) => this.tellSubmissions(asked));
  readonly submissionTotals = new SubmissionTotals();
  readonly ends: EndWatch;
  readonly endLines: EndLines;
  readonly eventFeeds: EventFeeds;
  readonly eventLines: EventLines;
  readonly logs: LogWriter;
  private readonly leadership: Leadership;
  private readonly shardLeader: ShardLeader;
  private readonly names: Names;
  /** Missing before the start, when this node neither leads nor knows a leader. */
  private host: ShardHost | undefined;
  private hints: HintSender | undefined;
  private handingOver: Promise<void> | undefined;
  private rehearsal: Rehearsal | undefined;
  private rehearsing: Promise<void> = Promise.resolve();
  private hasRehearsed = false;
  private readonly rehearsalTries = new RarerTries();
  /** Those of a leader elsewhere. */
  private readonly leaderFigures = new Recent(FIGURES_AGE_MS, () => this.askForFigures());

  constructor(
    private readonly options: ShardOptions & {
      readonly settingsBy: SettingsBy;
      /** The role that reads for people; null without row-level security. */
      readonly readerRole: string | null;
    },
    readonly pools: Pools,
    private readonly databaseClock: DatabaseClock,
  ) {
    const { id, config, log } = options;
    const { hot, pool } = pools;
    const clock = options.clock ?? databaseClock;
    this.id = id;
    this.clock = clock;
    this.hot = hot;
    this.pool = pool;
    this.reads = new TenantReads(pool, options.readerRole);
    this.tasks = new TaskDefinitions(hot, clock);
    this.leadership = this.openLeadership();
    this.shardLeader = this.openLeader();
    this.names = new Names(hot, config);
    this.submitter = this.openSubmitter();
    this.quotas = new TenantQuotas(hot);
    this.endLines = new EndLines(() => this.currentLeader());
    this.eventLines = new EventLines(() => this.currentLeader());
    this.eventFeeds = new EventFeeds({
      ...{ leaderNews: this.leaderNews, log },
      onLeaderLost: () => this.suspectLeader(),
      open: (receiver) => this.openEvents(receiver),
    });
    this.logs = new LogWriter({ hot, pool, config, clock });
    this.ends = new EndWatch({
      ...{ leaderNews: this.leaderNews, log },
      findEnded: (jobs) => findEnded(hot, jobs),
      onLeaderLost: () => this.suspectLeader(),
      open: (onEnded) => this.openEnds(onEnded),
    });
  }

  /** Begins to look at the lease, and leads when nobody else does. */
  start(host: ShardHost): void {
    this.host = host;
    this.hints = new HintSender(host.peers, this.id, () => this.knownLeader()?.url ?? null);
    this.leadership.start();
  }

  /** From now on nobody waits here for a leader or for the end of a job: when the next leader is there, they are too. */
  endWaiting(): void {
    this.rehearsal?.end();
    this.shardLeader.endWaiting();
    this.ends.close();
    this.eventFeeds.close();
  }

  /** Gives the term up; resolves when its dispatcher does nothing any more. What needs no leader is still served. */
  handOver(): Promise<void> {
    this.handingOver ??= this.leadership.stop().then(() => this.shardLeader.close());
    return this.handingOver;
  }

  /** Closes everything once nothing is under way. */
  async stop(): Promise<void> {
    this.endWaiting();
    this.rates.close();
    await this.handOver();
    await this.rehearsing;
    await closePools(this.pools);
  }

  leader(): Promise<Dispatcher> {
    return this.shardLeader.get();
  }

  currentLeader(): Dispatcher | undefined {
    return this.shardLeader.current;
  }

  knownLeader(): KnownLeader | null {
    // A request that was about to be forwarded when this node came to lead is carried out here.
    return this.shardLeader.current ? { url: this.host!.url, over: NEVER } : this.leadership.leader;
  }

  suspectLeader(): void {
    this.leadership.suspect();
  }

  figures(): Promise<Figures | null> {
    return this.shardLeader.current?.figures() ?? this.leaderFigures.get();
  }

  lease(): LeaseView | undefined {
    return this.leadership.lease;
  }

  databaseSilentMs(): number | null {
    return this.leadership.silentMs;
  }

  lookAtLease(): void {
    this.leadership.look();
  }

  async tellArrived(artifact: string): Promise<void> {
    const leader = this.currentLeader();
    const arrived = [artifact];
    if (leader) await leader.hint([], null, { arrived });
    else this.hints?.send({ jobs: [], startBefore: null, arrived });
  }

  /** Opens the connections of a leader ahead of time, and rehearses: a node that comes to lead has no time for that. */
  async prepareToLead(): Promise<void> {
    const { leader } = this.pools;
    if (this.leadership.current) return;
    if (leader.totalCount < leader.options.max) {
      await openAll(leader).catch((error: unknown) =>
        this.options.log.debug({ error: messageOf(error) }, 'connections could not be opened ahead of time'),
      );
    }
    const isBusy = this.rehearsal !== undefined || this.handingOver !== undefined;
    if (this.hasRehearsed || isBusy || this.leadership.leader === null) return;
    if (this.rehearsalTries.isDue()) this.rehearsing = this.rehearse();
  }

  private async rehearse(): Promise<void> {
    this.rehearsal = this.openRehearsal();
    try {
      this.hasRehearsed = await this.rehearsal.run();
      if (this.hasRehearsed) this.options.log.debug({ shard: this.id }, 'a takeover is rehearsed');
    } catch (error) {
      this.options.log.debug({ error: messageOf(error) }, 'a takeover could not be rehearsed');
    } finally {
      if (!this.hasRehearsed) this.rehearsalTries.failed();
      this.rehearsal = undefined;
    }
  }

  private openRehearsal(): Rehearsal {
    const { id: shard, hot, pool, names, clock, quotas, tasks } = this;
    const { nodeId, config, log } = this.options;
    return new Rehearsal({
      ...{ shard, nodeId, hot, pool, names, clock, config, log, quotas, tasks },
      compileSchemas: () => this.host!.compileSchemas(),
      // Its reads are given up at the deadline of writes: nothing depends on them.
      dispatcherFor: (term) =>
        new Dispatcher({ ...this.dispatcherOptions(term), patient: this.pools.leader, log: quietly(log) }),
    });
  }

  private openLeadership(): Leadership {
    const { id, databaseUrl, nodeId, config, log, settingsBy } = this.options;
    return new Leadership({
      ...{ databaseUrl, settingsBy, shard: id, nodeId, log },
      url: () => this.host!.url,
      ttlMs: config.leaseTtl,
      onTerm: (term) => {
        this.rehearsal?.end();
        this.shardLeader.begin(term);
        // What waits at other nodes for a leader comes here while the dispatcher loads, not after their next look.
        void this.host!.tellOfLease(id);
      },
      onFollowing: () => this.leaderNews.tell(),
      onReleased: () => this.host!.tellOfLease(id),
      onTime: (now, roundTripMs) => this.databaseClock.sample(now, roundTripMs),
    });
  }

  private openLeader(): ShardLeader {
    const { log } = this.options;
    return new ShardLeader({
      ...{ log, leadership: this.leadership, leaderNews: this.leaderNews },
      optionsFor: (term) => this.dispatcherOptions(term),
    });
  }

  private dispatcherOptions(term: Term): DispatcherOptions {
    const { config, log, artifacts } = this.options;
    const { leader, pool, patient } = this.pools;
    return {
      ...{ term, hot: leader, pool, patient, clock: this.clock, config, log, secret: this.host!.secret },
      ...{ tasks: this.tasks, artifacts },
      submitTimeoutMs: VISIBLE_WITHIN_MS,
      renounce: (reason, aboveEpoch) => this.leadership.renounce(term, reason, aboveEpoch),
    };
  }

  private openSubmitter(): Submitter {
    const { config, log } = this.options;
    return new Submitter({
      ...{ hot: this.hot, pool: this.pool, names: this.names, clock: this.clock, config, log },
      databaseNow: () => this.databaseClock.now(),
      submitKeyed: async (jobs, made, now, keep) => (await this.leader()).keyed.submit(jobs, made, now, keep),
      directStart: async (row, names, isCounted) =>
        (await this.currentLeader()?.submit(row, names, isCounted)) ?? false,
      hint: async (jobs, startBefore, { workflows, awaits: artifacts }) => {
        const leader = this.currentLeader();
        if (leader) await leader.hint(jobs, startBefore, { workflows, artifacts });
        else this.hints?.send({ jobs, startBefore, artifacts, ...(workflows && { workflows }) });
      },
    });
  }

  /** Tells the leader what this node was asked to submit; answers with the totals over all nodes. */
  private async tellSubmissions(asked: Asked): Promise<Asked | null> {
    const { nodeId } = this.options;
    if (this.currentLeader()) return this.submissionTotals.hear(nodeId, asked, performance.now());
    const known = this.leadership.leader;
    if (known === null || !this.host) return null;
    const said = { node: nodeId, asked };
    return (await this.host.peers.ask(known.url, SUBMISSIONS_PATH, said, this.id)) as Asked | null;
  }

  private async askForFigures(): Promise<Figures | null> {
    const known = this.leadership.leader;
    if (known === null) return null;
    return (await this.host!.peers.get(known.url, FIGURES_PATH, this.id)) as Figures | null;
  }

  private async openEvents(receiver: EventReceiver): Promise<EventSource | null> {
    const dispatcher = this.currentLeader();
    if (dispatcher) return new LocalEvents(dispatcher, receiver);
    const known = this.leadership.leader;
    if (known === null) return null;
    const { peers } = this.host!;
    return LeaderEvents.open({ shard: this.id, url: known.url, termOver: known.over, peers, receiver });
  }

  private async openEnds(onEnded: (ids: readonly string[]) => void): Promise<EndSource | null> {
    const dispatcher = this.currentLeader();
    if (dispatcher) return new LocalEnds(dispatcher, onEnded);
    const known = this.leadership.leader;
    if (known === null) return null;
    const { peers } = this.host!;
    return LeaderEnds.open({ shard: this.id, url: known.url, termOver: known.over, peers, onEnded });
  }
}

/** A log in which nothing is more than a detail. */
function quietly(log: Log): Log {
  const debug = (fields: Record<string, unknown>, message: string) => log.debug(fields, message);
  return { debug, info: debug, warn: debug, error: debug };
}
