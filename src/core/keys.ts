/**
 * What the same key again means. The rule belongs to the submission, not to the job: each submission says what it wants
 * done with the job that has its key, whatever earlier ones said.
 */

/** The modes of a key. */
export const KEY_MODES = ['keep', 'replace', 'debounce', 'throttle', 'reuse-when-ended'] as const;
/** What a submission wants done with the job that has its key. */
export type KeyMode = (typeof KEY_MODES)[number];

/** A mode and its window, which is zero for modes without one. */
export interface KeyRule {
  readonly mode: KeyMode;
  readonly windowMs: number;
}

/** The rule of a submission that names no mode. */
export const KEEP: KeyRule = Object.freeze({ mode: 'keep', windowMs: 0 });

/** Whether a mode has a window. */
export function hasWindow(mode: KeyMode): boolean {
  return mode === 'debounce' || mode === 'throttle';
}

/** Whether a submission with this rule may change a waiting job, which only the leader may do. */
export function mayReplace({ mode }: KeyRule): boolean {
  return mode === 'replace' || mode === 'debounce';
}

/** The job that has a key, as far as a submission with that key must know it. */
export interface KeyHolder {
  readonly createdAt: number;
  /** Whether it runs, has had an attempt, or has ended. */
  readonly isStarted: boolean;
  readonly isEnded: boolean;
}

/**
 * What becomes of a submission whose key a job has: `repeat` leaves the job as it is, `replace` gives it what the
 * submission says, `take-over` makes a new job, which has the key from then on.
 */
export type KeyDecision = 'repeat' | 'replace' | 'take-over';

/** Decides about a submission made at `at`. */
export function decideKey({ mode, windowMs }: KeyRule, at: number, holder: KeyHolder): KeyDecision {
  switch (mode) {
    case 'keep':
      return 'repeat';
    case 'replace':
      return holder.isStarted ? 'repeat' : 'replace';
    case 'debounce':
      // What has started may have read its data already, so the newest event needs a run of its own.
      return holder.isStarted ? 'take-over' : 'replace';
    case 'throttle':
      return at - holder.createdAt < windowMs ? 'repeat' : 'take-over';
    case 'reuse-when-ended':
      return holder.isEnded ? 'take-over' : 'repeat';
  }
}

/** What the answer to a submission says about its key. */
export interface Repetition {
  /** Whether the key already had a job, which is the one that is answered. */
  readonly repeated: boolean;
  /** Whether that job took what the submission says. */
  readonly replaced: boolean;
  /** The fields in which the submission differed from the job. */
  readonly differs: readonly string[];
}

/** The answer about a job that is new. */
export const NOT_REPEATED: Repetition = Object.freeze({ repeated: false, replaced: false, differs: [] });
