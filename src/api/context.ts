import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { LoopDelay } from '../host/loop-delay.js';
import type { Pool, Queryable } from '../store/database.js';
import type { LeaseView } from '../store/lease.js';
import type { Authentication } from './authentication.js';
import type { EndLines } from './end-lines.js';
import type { EndWatch } from './end-watch.js';
import type { LogWriter } from './log-writer.js';
import type { Submitter } from './submitter.js';

/** What the routes of a node work with. */
export interface NodeContext {
  readonly nodeId: string;
  readonly shard: number;
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly secret: Buffer;
  /** Connections with the plans of the hot statements. */
  readonly hot: Pool;
  /** Connections for everything else. */
  readonly pool: Pool;
  /** For look-ups of keys, which must not wait behind any traffic: workers would be taken for dead. */
  readonly keys: Queryable;
  readonly submitter: Submitter;
  readonly loopDelay: LoopDelay;
  /** Everybody who waits for the end of a job. */
  readonly ends: EndWatch;
  /** The lines on which other nodes are told which jobs end. */
  readonly endLines: EndLines;
  readonly logs: LogWriter;
  readonly authentication: Authentication;
  /** The shard's dispatcher; waits briefly while there is none, then throws NO_LEADER. */
  leader(): Promise<Dispatcher>;
  /** The dispatcher if this node leads at this moment. */
  currentLeader(): Dispatcher | undefined;
  lease(): LeaseView | undefined;
  /** How long ago the database answered on the connection of the lease; null while there is none. */
  databaseSilentMs(): number | null;
  /** Looks at the lease at once, because another node has given it up. */
  lookAtLease(): void;
  /** Looks at the list of nodes at once, because one has joined. */
  lookAtNodes(): void;
}
