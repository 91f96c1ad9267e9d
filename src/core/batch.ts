import type { Duration } from './duration.js';
import type { JobError, JobState, JobSubmission } from './job.js';

/** Batches: jobs that start together or not at all. */

/** The states of a batch. */
export const BATCH_STATES = ['pending', 'running', 'succeeded', 'failed', 'cancelled'] as const;
/** The state of a batch. */
export type BatchState = (typeof BATCH_STATES)[number];

/** What becomes of the other members when one fails. */
export const ON_MEMBER_FAILURE = ['cancel-rest', 'continue'] as const;
/** What becomes of the other members when one fails. */
export type OnMemberFailure = (typeof ON_MEMBER_FAILURE)[number];

/** The most jobs of a batch. */
export const MAX_MEMBERS = 1_000;

/** What a client sends to have jobs start together. */
export interface BatchSubmission {
  readonly jobs: readonly JobSubmission[];
  readonly onFailure?: OnMemberFailure;
  readonly startTimeout?: Duration;
}

/** The fields of a submission that a member does not take, and why. */
export const NOT_OF_MEMBERS = {
  key: 'the members of a batch have no keys',
  keyMode: 'the members of a batch have no keys',
  keyWindow: 'the members of a batch have no keys',
  retry: 'a member has one attempt each time its batch starts; retry the batch',
  hold: 'a member waits for its batch',
  startBefore: 'give the batch a "startTimeout"',
} as const satisfies { readonly [K in keyof JobSubmission]?: string };

/** A member as its batch shows it. */
export interface BatchMember {
  readonly id: string;
  readonly state: JobState;
}

/** A batch without its members. */
export interface BatchSummary {
  readonly id: string;
  readonly tenant: string;
  readonly state: BatchState;
  readonly onFailure: OnMemberFailure;
  readonly startTimeout: Duration | null;
  /** How many members it has. */
  readonly size: number;
  /** Counts how often it was set going, by its submission and by retries. */
  readonly run: number;
  /** When its last member is due. */
  readonly dueAt: string;
  /** The schedule that made it. */
  readonly schedule: string | null;
  /** Its occurrence; null for one that was run by hand. */
  readonly scheduledAt: string | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** Why it failed without having started. */
  readonly error: JobError | null;
}

/** A batch with its members, in the order in which they were submitted; those that were deleted are missing. */
export interface Batch extends BatchSummary {
  readonly jobs: readonly BatchMember[];
}

/** Whether a batch has ended. */
export function hasEnded(state: BatchState): boolean {
  return state !== 'pending' && state !== 'running';
}

/** What a batch waits for. */
export interface BatchWhy {
  readonly batchId: string;
  readonly state: string;
  /** Null if it does not wait. */
  readonly waitingFor: string | null;
  /** One sentence for people. */
  readonly detail: string;
  readonly figures: Readonly<Record<string, number | string | boolean | null>>;
}
