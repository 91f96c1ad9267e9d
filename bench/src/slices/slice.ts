import type { GraphName } from '../graphs.js';
import type { Account } from '../ledger.js';
import type { Spread } from '../statistics.js';

/**
 * The systems that a slice can run. `punctual-wire` has its worker in another process, `punctual-heard` listeners; `punctual-http`
 * makes calls, and so do `bare-calls` and, with the headers of ours, `bare-calls-like-ours`, without keeping any record.
 */
export type SystemName =
  | 'punctual'
  | 'punctual-wire'
  | 'punctual-heard'
  | 'punctual-http'
  | 'bare-calls'
  | 'bare-calls-like-ours'
  | 'graphile-worker'
  | 'pg-boss'
  | 'bullmq';

/** How hard jobs are submitted, the same for every system. */
export interface Load {
  readonly seconds: number;
  /** Seconds at the beginning that do not count, the same for all. */
  readonly warmUpSeconds: number;
  /** Most jobs that are submitted and have not started. */
  readonly ahead: number;
  readonly bulk: number;
  /** Bulk submissions at once. */
  readonly lanes: number;
}

export interface ThroughputTask {
  readonly kind: 'throughput';
  readonly load: Load;
}

/** How many listen to events, and to which. */
export interface Listening {
  readonly count: number;
  /** Those of the tenant that has the watched jobs, of their queue in a busy tenant, or of a tenant without jobs. */
  readonly to: 'tenant' | 'queue' | 'quiet';
}

export interface HeardTask {
  readonly kind: 'heard';
  readonly load: Load;
  /** Jobs a second beside the load, whose changes are listened to. */
  readonly watchedPerSecond: number;
  readonly listening: Listening;
}

/** What one process is asked to measure. */
export type SliceTask =
  | ThroughputTask
  | HeardTask
  | { readonly kind: 'latency'; readonly seconds: number; readonly warmUpSeconds: number }
  | { readonly kind: 'punctuality'; readonly seconds: number; readonly perSecond: number }
  | { readonly kind: 'herd'; readonly jobs: number; readonly leadSeconds: number }
  | CallsTask
  | GraphTask;

/** A steady stream of calls that are answered at once. */
export interface CallsTask {
  readonly kind: 'calls';
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly perSecond: number;
  /** Receivers that take their time, each with a call on its way at any moment; null for none. */
  readonly slow: { readonly receivers: number; readonly ms: number } | null;
}

/** Groups of graphs, one group after another in each lane. */
export interface GraphTask {
  readonly kind: 'graphs';
  /** Null for plain jobs, as many as there would be graphs. */
  readonly graph: GraphName | null;
  /** How many are submitted together. */
  readonly graphs: number;
  /** Groups on their way at a time. */
  readonly lanes: number;
  /** Whether the program that has the node in it submits them, as it does jobs, or speaks HTTP. */
  readonly way: 'program' | 'http';
  /**
   * What takes the time that is told: a group as a whole, or each step of a graph after the one before, whether the graph fits
   * into the slice or not.
   */
  readonly measure: 'group' | 'step';
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

export interface SliceOrder {
  readonly system: SystemName;
  readonly url: string;
  readonly folder: string;
  readonly task: SliceTask;
  /** Whether the jobs are of a tenant with quotas; for Punctual only. */
  readonly quotas: boolean;
  /** Where CPU profiles go, if they are wanted. */
  readonly profileFolder: string | null;
}

/** What a slice has measured. */
export interface SliceResult {
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly submitted: number;
  readonly account: Account;
  /** What went wrong: lost or doubled jobs, errors. */
  readonly problems: readonly string[];
  readonly jobsPerSecond?: number;
  readonly perSecond?: readonly number[];
  readonly delays?: readonly number[];
  readonly spread?: Spread;
  /** Further figures by name; those of several slices are averaged. */
  readonly figures?: Readonly<Record<string, number>>;
  /** Jobs that started before they were due. */
  readonly early?: number;
}

export type SliceMessage =
  | { readonly type: 'progress'; readonly text: string }
  | { readonly type: 'result'; readonly result: SliceResult }
  | { readonly type: 'failed'; readonly message: string };
