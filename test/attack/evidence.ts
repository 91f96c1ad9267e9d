/**
 * What observers outside the scheduler saw during an attack. All times are milliseconds of the machine's
 * monotonic clock, which all processes share.
 */
export interface Evidence {
  /** When which attack ran, in order; `calm` before the first. */
  readonly phases: readonly Phase[];
  readonly calm: readonly CalmCall[];
  readonly holds: readonly HoldSample[];
  readonly machine: readonly MachineSample[];
  readonly control: readonly ControlDelay[];
  /** Each change of the lease that was seen. */
  readonly terms: readonly Term[];
  readonly deaths: readonly Death[];
}

/** The name of the time before the first attack. */
export const CALM = 'calm';

export interface Phase {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
}

/** What the calm client asks for: a job from its submission to its result, a sign of life, a short list. */
export type CalmWish = 'job' | 'livez' | 'list';

/** One wish of the calm client, from asking to having. */
export interface CalmCall {
  readonly what: CalmWish;
  readonly node: string;
  readonly from: number;
  readonly to: number;
  /** Null when it went well. */
  readonly error: string | null;
}

/** What a node's histogram of its event loop's delay gained between two looks. */
export interface HoldSample {
  readonly node: string;
  readonly from: number;
  readonly to: number;
  /** The lower bounds of the buckets above the allowed hold that have gained, with their gain. */
  readonly held: readonly { readonly atLeastMs: number; readonly times: number }[];
}

/** The machine and the nodes' processes at one moment; counters only grow. */
export interface MachineSample {
  readonly at: number;
  /** Processor time that other guests of the host took so far, of all processors. */
  readonly stolenMs: number;
  readonly nodes: Readonly<Record<string, NodeSample>>;
}

export interface NodeSample {
  readonly rssMb: number;
  /** How long the main thread was ready to run so far and had no processor. */
  readonly waitedMs: number;
}

/** By how much a timer of a process came late that has next to nothing to do: that is the machine's doing. */
export interface ControlDelay {
  readonly at: number;
  readonly delayMs: number;
}

export interface Term {
  readonly epoch: number;
  readonly holder: string;
  readonly at: number;
}

export interface Death {
  readonly member: string;
  readonly at: number;
  readonly detail: string;
}

/** What came back from one request of an attack. */
export interface Answer {
  /** What was sent, for people: method, path, and what is wrong or large about it. */
  readonly request: string;
  readonly method: string;
  readonly node: string;
  /** Null when no answer came. */
  readonly status: number | null;
  readonly contentType: string;
  /** The body of an error, as far as it is JSON. */
  readonly problem: unknown;
  readonly requestId: string;
  readonly ms: number;
  /** Why no answer came. */
  readonly failure: string | null;
}
