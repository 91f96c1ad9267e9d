import type { KnownLeader } from '../cluster/leader-elsewhere.js';
import type { Clock } from '../core/clock.js';
import type { Figures } from '../core/figures.js';
import type { News } from '../core/news.js';
import type { SubmissionTotals } from '../core/submission-rate.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Pool } from '../store/database.js';
import type { LeaseView } from '../store/lease.js';
import type { TaskDefinitions } from '../store/task-definitions.js';
import type { TenantReads } from '../store/tenant-reads.js';
import type { EndLines } from './end-lines.js';
import type { EndWatch } from './end-watch.js';
import type { EventFeeds } from './event-feeds.js';
import type { EventLines } from './event-lines.js';
import type { LogWriter } from './log-writer.js';
import type { SubmissionRates } from './submission-rates.js';
import type { Submitter } from './submitter.js';
import type { TenantQuotas } from './tenant-quotas.js';

/** The way to the leader of a shard, for requests that this node does not carry out itself. */
export interface FollowedShard {
  readonly id: number;
  /** Told whenever another leader may be there than before. */
  readonly leaderNews: News;
  /** The leader as this node knows it now, be it this node itself; null while there is none. */
  knownLeader(): KnownLeader | null;
  /** Looks at the lease soon, because the leader does not answer. */
  suspectLeader(): void;
}

/** One database with everything that this node keeps for it. */
export interface Shard extends FollowedShard {
  /** The clock of the shard's database. */
  readonly clock: Clock;
  /** Connections with the plans of the hot statements. */
  readonly hot: Pool;
  /** Connections for everything else. */
  readonly pool: Pool;
  /** What is read for people, behind row-level security. */
  readonly reads: TenantReads;
  /** The tasks that are defined, as this node knows them. */
  readonly tasks: TaskDefinitions;
  readonly submitter: Submitter;
  /** The quotas of tenants. */
  readonly quotas: TenantQuotas;
  /** The rates of submissions of tenants with such a quota. */
  readonly rates: SubmissionRates;
  /** What the nodes were asked for lately, if this one leads. */
  readonly submissionTotals: SubmissionTotals;
  /** Everybody who waits for the end of a job. */
  readonly ends: EndWatch;
  /** The lines on which other nodes are told which jobs end. */
  readonly endLines: EndLines;
  /** Everybody who listens to events. */
  readonly eventFeeds: EventFeeds;
  /** The lines on which other nodes are told what happens. */
  readonly eventLines: EventLines;
  readonly logs: LogWriter;
  /** The shard's dispatcher; waits briefly while there is none, then throws NO_LEADER. */
  leader(): Promise<Dispatcher>;
  /** The dispatcher if this node leads at this moment. */
  currentLeader(): Dispatcher | undefined;
  /** What only the leader knows, at most a second or two old; null if it cannot be had at once. */
  figures(): Promise<Figures | null>;
  lease(): LeaseView | undefined;
  /** How long ago the database answered on the connection of the lease; null while there is none. */
  databaseSilentMs(): number | null;
  /** Tells the leader that an artifact has arrived; if it is not told, it finds out by itself. */
  tellArrived(artifact: string): Promise<void>;
  /** Looks at the lease at once, because another node has given it up. */
  lookAtLease(): void;
}
