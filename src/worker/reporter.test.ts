import { describe, expect, it } from 'vitest';
import { PunctualError } from '../core/errors.js';
import type { Assignment, AttemptResult, ReportAnswer } from '../core/wire.js';
import { Reporter } from './reporter.js';
import { Attempt, type AttemptOwner } from './running-attempt.js';

const nobody = {} as AttemptOwner;

/** Reports results to `answer` and gives the reports once the expected number of attempts was answered. */
async function reportAll(
  attempts: readonly { readonly id: string; readonly result?: unknown; readonly bytes?: number }[],
  answer: (results: readonly AttemptResult[]) => ReportAnswer | null,
) {
  const reports: AttemptResult[][] = [];
  const outcomes: string[] = [];
  await new Promise<void>((resolve) => {
    let answered = 0;
    const reporter = new Reporter({
      triesAtOnce: 1,
      send: async (results) => {
        reports.push([...results]);
        return answer(results);
      },
      onAnswered: ({ jobId }, how) => {
        outcomes.push(`${jobId} ${how}`);
        answered += 1;
        if (answered === attempts.length) setImmediate(resolve);
      },
      onFailure: () => undefined,
      signal: new AbortController().signal,
    });
    for (const { id, result = null, bytes = 100 } of attempts) {
      const attempt = new Attempt({ jobId: id, fence: 1 } as Assignment, nobody);
      reporter.add(attempt, { result: { jobId: id, fence: 1, outcome: 'succeeded', result }, bytes });
    }
  });
  return { reports, outcomes };
}

const takeAll = (results: readonly AttemptResult[]): ReportAnswer => ({
  epoch: 1,
  accepted: results.map((result) => result.jobId),
  stale: [],
});

describe('reports', () => {
  it('carry together what ended together', async () => {
    const { reports } = await reportAll([{ id: 'a' }, { id: 'b' }, { id: 'c' }], takeAll);
    expect(reports.map((report) => report.map((result) => result.jobId))).toEqual([['a', 'b', 'c']]);
  });

  it('stay within a size', async () => {
    const attempts = Array.from({ length: 30 }, (_, index) => ({ id: `job-${index}`, bytes: 256 * 1024 }));
    const { reports } = await reportAll(attempts, takeAll);
    expect(reports.length).toBeGreaterThan(1);
    expect(Math.max(...reports.map((report) => report.length))).toBeLessThanOrEqual(16);
  });

  it('repeat what an answer left out, and all of it when the answer does not count', async () => {
    let asked = 0;
    const { reports, outcomes } = await reportAll([{ id: 'a' }, { id: 'b' }], (results) => {
      asked += 1;
      if (asked === 1) return null;
      return takeAll(asked === 2 ? results.slice(0, 1) : results);
    });
    expect(reports.map((report) => report.map((result) => result.jobId))).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      ['b'],
    ]);
    expect(outcomes).toEqual(['a accepted', 'b accepted']);
  });

  it('are split until a result that the scheduler refuses stands alone, and its job fails for good', async () => {
    const attempts = Array.from({ length: 9 }, (_, index) => ({
      id: `job-${index}`,
      result: index === 6 ? 'poison' : 'fine',
    }));
    const { reports, outcomes } = await reportAll(attempts, (results) => {
      if (results.some((result) => result.outcome === 'succeeded' && result.result === 'poison')) {
        throw new PunctualError('INVALID_REQUEST', 'a result is not to my taste');
      }
      return takeAll(results);
    });
    const last = reports.flat().findLast((result) => result.jobId === 'job-6');
    expect(last).toMatchObject({ outcome: 'failed', retryable: false, error: { code: 'RESULT_REFUSED' } });
    expect(outcomes.toSorted()).toEqual(attempts.map(({ id }) => `${id} accepted`));
  });

  it('give up a job whose failure is refused as well, and no other', async () => {
    const { outcomes } = await reportAll([{ id: 'a' }, { id: 'bad' }, { id: 'b' }], (results) => {
      if (results.some((result) => result.jobId === 'bad')) throw new PunctualError('BODY_TOO_LARGE', 'no');
      return takeAll(results);
    });
    expect(outcomes.toSorted()).toEqual(['a accepted', 'b accepted', 'bad refused']);
  });

  it('deliver all others past a result that the scheduler trips over', async () => {
    let trips = 0;
    const { outcomes } = await reportAll([{ id: 'odd' }, { id: 'a' }, { id: 'b' }], (results) => {
      if (results.some((result) => result.jobId === 'odd') && trips++ < 4) throw new Error('tripped');
      return takeAll(results);
    });
    expect(outcomes.at(-1)).toBe('odd accepted');
    expect(outcomes).toHaveLength(3);
  });
});
