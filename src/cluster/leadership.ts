import type pg from 'pg';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { Loop, logFailure } from '../core/loop.js';
import { openConnection, type SettingsBy } from '../store/database.js';
import {
  endLeaseBlockers,
  ensureLease,
  type LeaseView,
  lockLeasesNow,
  lookAtLease,
  releaseTerm,
  renewTerm,
  sessionPid,
  takeTerm,
} from '../store/lease.js';
import { announcedPid } from '../store/pooler.js';
import type { KnownLeader } from './leader-elsewhere.js';
import { Term } from './term.js';

/**
 * Leading a shard by the lease in its database.
 *
 * A standby reads the lease without locking anything. Only when the lease is expired, or its holder's session is gone
 * from the database, does it lock the table, which waits for every fenced write of the old term, and check again inside
 * the UPDATE. The connection that holds the lease is used for nothing else: its session is the proof of life, and
 * renewals never wait for a free connection. Sockets between nodes prove nothing: three nodes that cannot reach each
 * other must not take the term from one another.
 *
 * A leader trusts its term from when the renewal was sent, and only for a part of the TTL. In doubt it ends the term
 * and takes a new one, which waits for its own unfinished writes or ends them.
 */

interface LeadershipOptions {
  readonly databaseUrl: string;
  /** How the connection gets its settings; default with its start. */
  readonly settingsBy?: SettingsBy;
  readonly shard: number;
  readonly nodeId: string;
  readonly url: () => string;
  readonly ttlMs: number;
  readonly log: Log;
  /** Called with every new term; it lasts until `term.over`. */
  readonly onTerm: (term: Term) => void;
  /** Called when another node is seen to lead. */
  readonly onFollowing: () => void;
  /** Called when the term was released on stop, to tell the other nodes before their next look. */
  readonly onReleased: () => Promise<void>;
  /** Called with the database's time whenever an answer carries it, and with the round trip of that answer. */
  readonly onTime: (databaseNow: number, roundTripMs: number) => void;
}

/** The share of the TTL for which a leader trusts its term; the rest covers clocks that run at different speeds. */
const TRUSTED_SHARE = 0.8;
/** How long a takeover waits for fenced writes of the old term before it ends their sessions. */
const PATIENCE_MS = 500;
/** Less than the pause between the repeated calls of whoever suspects the leader, so that none of them is ignored. */
const SUSPECT_AT_MOST_EVERY_MS = 25;
/**
 * A first suspicion is followed by a few quick looks: a connection to a killed node breaks some milliseconds before the
 * server has noticed the end of that node's session. Later suspicions of a leader that proves to be there cause none.
 */
const QUICK_LOOKS = 4;
const QUICK_LOOK_MS = 8;
const NEW_SUSPICION_AFTER_MS = 1_000;
/** The pause after another node was faster to take the term: soon the lease says which node it is. */
const BEATEN_MS = 20;

/** The term of another node. The controller aborts requests to it when the term is over. */
interface FollowedTerm {
  readonly epoch: number;
  readonly holder: string;
  readonly url: string;
  readonly controller: AbortController;
}

/** Keeps, takes and watches the lease of one shard. */
export class Leadership {
  private connection: pg.Client | undefined;
  /** The session whose end proves that this node is gone; null behind a pooler, whose sessions outlive the node. */
  private session: number | null = null;
  private term: Term | undefined;
  private readonly loop: Loop;
  private latest: LeaseView | undefined;
  private followed: FollowedTerm | undefined;
  private pendingReason = 'first term of this node';
  private stopping = false;
  /**
   * The highest epoch that this node has held or heard of; its next term lies above it. A restored database may hold a
   * lower epoch, and no fence could distinguish two terms of the same epoch and holder.
   */
  private aboveEpoch = 0;
  private suspectedAt = Number.NEGATIVE_INFINITY;
  /** Looks that follow each other quickly before the usual pause. */
  private quickLooks = 0;
  private heardAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: LeadershipOptions) {
    this.loop = new Loop({
      name: 'leadership',
      everyMs: this.standbyMs,
      pass: () => this.runOnce(),
      onError: logFailure(options.log, 'the lease could not be kept or looked at'),
    });
  }

  private get standbyMs(): number {
    return Math.min(800, this.options.ttlMs / 4);
  }

  get shard(): number {
    return this.options.shard;
  }

  /** The term of this node while it leads. */
  get current(): Term | undefined {
    return this.term && !this.term.over ? this.term : undefined;
  }

  /** The lease as last seen. */
  get lease(): LeaseView | undefined {
    return this.latest;
  }

  /** Milliseconds since the last answer on the lease's connection; null while there is no connection. */
  get silentMs(): number | null {
    return this.connection === undefined ? null : performance.now() - this.heardAt;
  }

  /** The leader on another node, as last seen; null when this node leads or nobody does. */
  get leader(): KnownLeader | null {
    if (!this.followed || this.current) return null;
    return { url: this.followed.url, over: this.followed.controller.signal };
  }

  start(): void {
    this.loop.start();
  }

  /** Releases the term, so that another node can lead at once. */
  async stop(): Promise<void> {
    this.stopping = true;
    const term = this.term;
    await this.loop.stop();
    term?.end('the node stops');
    if (term && this.connection) {
      await this.release(this.connection, term);
    }
    await this.connection?.end().catch(() => undefined);
    this.connection = undefined;
  }

  private async release(connection: pg.Client, term: Term): Promise<void> {
    try {
      await releaseTerm(connection, term);
      await this.options.onReleased();
    } catch (error) {
      // The other nodes find out themselves, at the latest when the lease expires.
      this.options.log.debug({ error: messageOf(error) }, 'the term could not be handed over at once');
    }
  }

  /**
   * Looks at the lease soon, because something suggests that the leader may be gone. Only the database decides whether
   * the term is over. Many suspicions at once cause one look.
   */
  suspect(): void {
    const now = performance.now();
    if (now - this.suspectedAt < SUSPECT_AT_MOST_EVERY_MS) return;
    if (now - this.suspectedAt > NEW_SUSPICION_AFTER_MS) this.quickLooks = QUICK_LOOKS;
    this.suspectedAt = now;
    this.loop.wake();
  }

  /** Looks at the lease now, because another node says that it has changed. */
  look(): void {
    this.loop.wake();
  }

  /** Ends the current term and takes a new one: the recovery from every doubt. */
  renounce(term: Term, reason: string, aboveEpoch = 0): void {
    if (this.term !== term) return;
    this.aboveEpoch = Math.max(this.aboveEpoch, aboveEpoch);
    this.pendingReason = reason;
    term.end(reason);
    this.loop.wake();
  }

  /** One look, renewal or takeover; answers with the pause until the next one. */
  async runOnce(): Promise<number> {
    if (this.stopping) return this.standbyMs;
    const connection = this.connection ?? (await this.connect());
    const term = this.current;
    if (term) return this.renew(connection, term);
    return this.standBy(connection);
  }

  private async renew(connection: pg.Client, term: Term): Promise<number> {
    const sentAt = performance.now();
    try {
      const renewal = await renewTerm(connection, term, this.options.ttlMs);
      this.heardAt = performance.now();
      if (renewal) {
        this.options.onTime(renewal.now, performance.now() - sentAt);
        if (renewal.serverStartedAt !== this.latest?.serverStartedAt) {
          // Behind a pooler the connection outlives the server. A new server may lack commits that memory relies on.
          this.renounce(term, 'the database server is another one than when the term began');
          return 0;
        }
        term.trustUntil(sentAt + this.options.ttlMs * TRUSTED_SHARE);
        return this.options.ttlMs / 3;
      }
    } catch (error) {
      this.dropConnection();
      throw error;
    }
    term.end('another node took the term, or it ran out');
    return 0;
  }

  private async standBy(connection: pg.Client): Promise<number> {
    let view: LeaseView;
    const askedAt = performance.now();
    try {
      view = await lookAtLease(connection, this.options.shard);
      // Nobody has led yet, or the row was lost.
      if (view.epoch === 0) await ensureLease(connection, this.options.shard);
    } catch (error) {
      this.dropConnection();
      throw error;
    }
    this.heardAt = performance.now();
    this.latest = view;
    this.aboveEpoch = Math.max(this.aboveEpoch, view.epoch);
    this.noteLeader(view);
    this.options.onTime(view.now, performance.now() - askedAt);
    if (!this.isFree(view)) {
      if (this.quickLooks === 0) return this.standbyMs;
      this.quickLooks -= 1;
      return QUICK_LOOK_MS;
    }
    this.quickLooks = 0;
    const reason = this.isOurs(view) ? this.pendingReason : whyOver(view);
    const sentAt = performance.now();
    const epoch = await this.take(connection, this.aboveEpoch, reason);
    if (epoch === null || this.stopping) return BEATEN_MS;
    this.aboveEpoch = epoch;
    const trustedUntil = sentAt + this.options.ttlMs * TRUSTED_SHARE;
    this.term = new Term(this.options.shard, epoch, this.options.nodeId, trustedUntil);
    this.options.log.info({ shard: this.options.shard, epoch, reason }, 'this node leads');
    this.options.onTerm(this.term);
    return this.options.ttlMs / 3;
  }

  /** The epoch distinguishes this process from another one that was started with the same node id. */
  private isOurs({ holder, epoch }: LeaseView): boolean {
    return holder === this.options.nodeId && epoch === this.term?.epoch;
  }

  /** Whether this node may take the term: it is over, or it is its own. */
  private isFree(view: LeaseView): boolean {
    return view.expired || view.sessionGone || this.isOurs(view);
  }

  /** Notes which node leads, and aborts the requests to a leader whose term is over. */
  private noteLeader(view: LeaseView): void {
    const { epoch, holder, holderUrl: url } = view;
    // Another process may have this node's id for a while: the one that it replaces. Their addresses differ.
    const isSelf = holder === this.options.nodeId && url === this.options.url();
    const leads = !view.expired && !view.sessionGone && url !== '' && !isSelf;
    if (leads && this.followed?.epoch === epoch && this.followed.holder === holder) return;
    this.followed?.controller.abort();
    this.followed = leads ? { epoch, holder, url, controller: new AbortController() } : undefined;
    if (leads) this.options.onFollowing();
  }

  private async take(connection: pg.Client, aboveEpoch: number, reason: string): Promise<number | null> {
    let patience: NodeJS.Timeout | undefined;
    try {
      await connection.query('BEGIN');
      if (!(await lockLeasesNow(connection))) {
        await connection.query('ROLLBACK');
        // Another node may have been faster. A lock that waits for the new leader's first writes would delay all its
        // later ones.
        if (!this.isFree(await lookAtLease(connection, this.options.shard))) return null;
        await connection.query('BEGIN');
      }
      // Behind a pooler every transaction may run in another session, so the pid is read inside this one.
      const waiting = this.session ?? (await sessionPid(connection));
      patience = setTimeout(() => void this.endStragglers(waiting), PATIENCE_MS);
      const epoch = await takeTerm(connection, {
        shard: this.options.shard,
        holder: this.options.nodeId,
        holderUrl: this.options.url(),
        sessionPid: this.session,
        aboveEpoch,
        ttlMs: this.options.ttlMs,
        reason,
      });
      await connection.query('COMMIT');
      return epoch;
    } catch (error) {
      this.dropConnection();
      throw error;
    } finally {
      clearTimeout(patience);
    }
  }

  /** A leader that hangs keeps its locks: ends the sessions that block the takeover, over a second connection. */
  private async endStragglers(waitingPid: number): Promise<void> {
    try {
      const helper = await this.openLeaseConnection(() => undefined);
      try {
        const view = await lookAtLease(helper, this.options.shard);
        // If there is a new term, the blockers are its writers.
        if (this.isFree(view)) await endLeaseBlockers(helper, waitingPid);
      } finally {
        await helper.end();
      }
    } catch (error) {
      this.options.log.warn({ error: messageOf(error) }, 'sessions of the old term could not be ended');
    }
  }

  private async connect(): Promise<pg.Client> {
    let opened: pg.Client | undefined;
    // An old connection may report its end minutes later, when it has been replaced.
    const connection = await this.openLeaseConnection(() => {
      if (opened !== undefined && opened === this.connection) this.dropConnection();
    });
    opened = connection;
    try {
      this.session = await ownSession(connection);
    } catch (error) {
      void connection.end().catch(() => undefined);
      throw error;
    }
    this.heardAt = performance.now();
    this.connection = connection;
    return connection;
  }

  private openLeaseConnection(onIdleError: () => void): Promise<pg.Client> {
    const deadline = Math.round(this.options.ttlMs * 0.6);
    return openConnection(this.options.databaseUrl, {
      applicationName: `punctual lease ${this.options.nodeId}`,
      ...(this.options.settingsBy && { settingsBy: this.options.settingsBy }),
      hot: false,
      statementTimeoutMs: deadline,
      lockTimeoutMs: deadline,
      idleInTransactionTimeoutMs: deadline,
      onIdleError,
    });
  }

  /** Without its session, which is its proof of life, the term cannot be kept: it ends, and a new one is taken. */
  private dropConnection(): void {
    const connection = this.connection;
    this.connection = undefined;
    void connection?.end().catch(() => undefined);
    if (this.term && !this.term.over && connection) {
      this.pendingReason = 'the lease connection was lost';
      this.term.end(this.pendingReason);
    }
    this.loop.wake();
  }
}

/** Why the term of another node is over. */
function whyOver({ holder, expiresAt, expired }: LeaseView): string {
  if (holder === '') return 'nobody had led before';
  if (expiresAt === 0) return 'the leader before had given it up';
  return expired ? 'the lease had expired' : "the leader's session was gone";
}

/**
 * The session of a connection, or null behind a pooler. At the start of a connection a server sends the id of the
 * backend that serves it; a pooler sends an id of its own.
 */
async function ownSession(connection: pg.Client): Promise<number | null> {
  const pid = await sessionPid(connection);
  return pid === announcedPid(connection) ? pid : null;
}
