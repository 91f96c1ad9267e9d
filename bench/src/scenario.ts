import type { Peer } from './peers.js';
import type { Progress } from './progress.js';
import type { ScenarioResult } from './result.js';

/** What a scenario is given. */
export interface Context {
  readonly seconds: number;
  /** The peers that take part, as far as they are here. */
  readonly peers: readonly Peer[];
  /** Where `redis-server` is, if BullMQ takes part. */
  readonly redis: string | null;
  /** Whether scenarios that can also run ours for a tenant with quotas. */
  readonly quotas: boolean;
  readonly progress: Progress;
  /** Aborts when the user does not want to wait any longer. */
  readonly signal: AbortSignal;
  /** Where CPU profiles of our processes go, or null. */
  readonly profileFolder: string | null;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** What `--seconds` means here. */
  readonly secondsMean: string;
  readonly defaultSeconds: number;
  run(context: Context): Promise<ScenarioResult>;
}
