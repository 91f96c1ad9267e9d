import type { Account } from '../ledger.js';
import type { Spread } from '../statistics.js';

/** The systems that a slice can run. `punctual-wire` has its worker in another process. */
export type SystemName = 'punctual' | 'punctual-wire' | 'graphile-worker' | 'pg-boss' | 'bullmq';

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

/** What one process is asked to measure. */
export type SliceTask =
  | { readonly kind: 'throughput'; readonly load: Load }
  | { readonly kind: 'latency'; readonly seconds: number; readonly warmUpSeconds: number }
  | { readonly kind: 'punctuality'; readonly seconds: number; readonly perSecond: number }
  | { readonly kind: 'herd'; readonly jobs: number; readonly leadSeconds: number };

export interface SliceOrder {
  readonly system: SystemName;
  readonly url: string;
  readonly folder: string;
  readonly task: SliceTask;
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
  /** Jobs that started before they were due. */
  readonly early?: number;
}

export type SliceMessage =
  | { readonly type: 'progress'; readonly text: string }
  | { readonly type: 'result'; readonly result: SliceResult }
  | { readonly type: 'failed'; readonly message: string };
