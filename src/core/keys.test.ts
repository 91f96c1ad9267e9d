import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideKey, KEY_MODES, type KeyMode } from './keys.js';

const WINDOW = 10;

/** A job as a history of one key sees it. */
interface Job {
  readonly createdAt: number;
  /** The number of the submission that it has its values from. */
  values: number;
  runAt: number;
  startedAt: number | null;
  endedAt: number | null;
}

/** What happens to a key: time passes, then it is submitted, or its newest job starts or ends. */
const steps = fc.array(
  fc.record({ after: fc.nat({ max: 6 }), does: fc.constantFrom('submit', 'submit', 'start', 'end') }),
  { minLength: 1, maxLength: 40 },
);

/** Plays a history and gives all jobs, and for every submission its moment and the job that answered it. */
function play(mode: KeyMode, history: readonly { after: number; does: string }[]) {
  const jobs: Job[] = [];
  const submissions: { at: number; job: Job }[] = [];
  let now = 0;
  for (const { after, does } of history) {
    now += after;
    const holder = jobs.at(-1);
    if (does === 'start') {
      if (holder && holder.runAt <= now) holder.startedAt ??= now;
    } else if (does === 'end') {
      if (holder?.startedAt != null) holder.endedAt ??= now;
    } else {
      const values = submissions.length;
      const runAt = mode === 'debounce' ? now + WINDOW : now;
      const decision = holder
        ? decideKey({ mode, windowMs: WINDOW }, now, {
            createdAt: holder.createdAt,
            isStarted: holder.startedAt !== null,
            isEnded: holder.endedAt !== null,
          })
        : 'take-over';
      if (decision === 'take-over')
        jobs.push({ createdAt: now, values, runAt, startedAt: null, endedAt: null });
      else if (decision === 'replace') Object.assign(holder!, { values, runAt });
      submissions.push({ at: now, job: jobs.at(-1)! });
    }
  }
  return { jobs, submissions };
}

/** Checks something about every history of a mode. */
function always(mode: KeyMode, check: (played: ReturnType<typeof play>) => void): void {
  fc.assert(fc.property(steps, (history) => check(play(mode, history))));
}

describe('the mode', () => {
  it('keep gives every submission the first job, with the first values', () => {
    always('keep', ({ jobs }) => {
      expect(jobs.length).toBeLessThanOrEqual(1);
      for (const job of jobs) expect(job.values).toBe(0);
    });
  });

  it('replace gives one job the values of the last submission before its start', () => {
    always('replace', ({ jobs: [job], submissions }) => {
      if (!job) return;
      const before = submissions.filter(({ at }) => job.startedAt === null || at <= job.startedAt);
      expect(submissions.every((submission) => submission.job === job)).toBe(true);
      // A submission in the very moment of the start may come before or after it.
      expect(before.length - 1).toBeGreaterThanOrEqual(job.values);
      const later = submissions.slice(job.values + 1);
      expect(later.every(({ at }) => job.startedAt !== null && at >= job.startedAt)).toBe(true);
    });
  });

  it('debounce never starts a job before its window has passed without a submission', () => {
    always('debounce', ({ jobs, submissions }) => {
      submissions.forEach(({ at, job }, i) => {
        expect(job.values).toBeGreaterThanOrEqual(i);
        if (job.startedAt !== null) expect(job.startedAt - at).toBeGreaterThanOrEqual(WINDOW);
      });
      // Only the newest job can be waiting, so none is left behind unstarted.
      for (const job of jobs.slice(0, -1)) expect(job.startedAt).not.toBeNull();
    });
  });

  it('throttle creates jobs at least a window apart, and answers with one of the last window', () => {
    always('throttle', ({ jobs, submissions }) => {
      jobs.slice(1).forEach((job, i) => {
        expect(job.createdAt - jobs[i]!.createdAt).toBeGreaterThanOrEqual(WINDOW);
      });
      for (const { at, job } of submissions) expect(at - job.createdAt).toBeLessThan(WINDOW);
    });
  });

  it('reuse-when-ended never has two jobs that have not ended', () => {
    always('reuse-when-ended', ({ jobs }) => {
      for (const [i, job] of jobs.slice(1).entries()) {
        expect(jobs[i]!.endedAt).not.toBeNull();
        expect(job.createdAt).toBeGreaterThanOrEqual(jobs[i]!.endedAt!);
      }
    });
  });
});

it('no mode changes a job that has started', () => {
  const rule = fc.record({ mode: fc.constantFrom(...KEY_MODES), windowMs: fc.nat({ max: 100 }) });
  fc.assert(
    fc.property(rule, fc.nat({ max: 200 }), fc.boolean(), (rule, at, isEnded) => {
      expect(decideKey(rule, at, { createdAt: 50, isStarted: true, isEnded })).not.toBe('replace');
    }),
  );
});
