import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BacklogModel, type NewJob } from '../../test/backlog-model.js';

/** A few values of each, so that jobs meet on the same segment, at the same moment, around the look-ahead. */
const rank = fc.constantFrom(5, 5, 9);
const dueIn = fc.constantFrom(-60_000, -1, 0, 1, 500, 501, 1_999, 2_000, 2_500, 600_000);
const newJob: fc.Arbitrary<NewJob> = fc.record({
  queue: fc.constantFrom(1, 1, 1, 2),
  needs: fc.constantFrom(7, 7, 7, 8),
  key: fc.constantFrom(null, null, null, 'a', 'b'),
  rank,
  dueIn,
});
const pick = fc.nat(100);

/** One thing that happens; its name makes a counterexample readable. */
type Step = readonly [name: string, run: (model: BacklogModel) => void];

const submitted: fc.Arbitrary<Step> = fc
  .tuple(newJob, fc.constantFrom('now' as const, 'now' as const, 'late' as const, 'lost' as const))
  .map(([job, hint]) => [`submit ${JSON.stringify(job)}, hint ${hint}`, (model) => model.submit(job, hint)]);

const flood: fc.Arbitrary<Step> = fc
  .tuple(newJob, fc.integer({ min: 5, max: 12 }), fc.constantFrom('now' as const, 'lost' as const))
  .map(([job, count, hint]) => [
    `submit ${count} of ${JSON.stringify(job)}, hint ${hint}`,
    (model) => {
      for (let i = 0; i < count; i++) model.submit(job, hint);
    },
  ]);

const claiming: fc.Arbitrary<Step> = fc
  .tuple(fc.integer({ min: 1, max: 6 }), fc.boolean())
  .map(([max, all]) => [
    `claim ${max} of ${all ? 'all' : 'one'}`,
    (model) => void model.beginClaim(max, (needs) => all || needs === 7),
  ]);

const reading: fc.Arbitrary<Step> = fc.constantFrom<Step[]>(
  ['begin to read', (model) => void model.beginRead()],
  ['begin to read', (model) => void model.beginRead()],
  ['run the read', (model) => model.runRead()],
  ['run the read', (model) => model.runRead()],
  ['end the read', (model) => model.endRead()],
  ['fail the read', (model) => model.failRead()],
  ['read all wanted', (model) => model.readAllWanted()],
);

/** Steps that no cursor covers, and that may therefore go beyond the limit. */
const exempt: fc.Arbitrary<Step>[] = [
  fc
    .tuple(pick, dueIn)
    .map(([which, after]) => [
      `retry ${which} in ${after}`,
      (model) => model.retry(which, Math.max(0, after)),
    ]),
  fc
    .tuple(pick, rank, dueIn)
    .map(([which, to, after]) => [
      `change ${which} to rank ${to} in ${after}`,
      (model) => model.change(which, to, Math.max(0, after)),
    ]),
  fc.constant<Step>(['fail the claim', (model) => model.failClaim()]),
];

const covered: fc.Arbitrary<Step>[] = [
  submitted,
  submitted,
  flood,
  claiming,
  reading,
  reading,
  reading,
  fc.constantFrom<Step[]>(
    ['deliver a hint', (model) => model.deliverHint()],
    ['begin to look back', (model) => model.beginLookBack()],
    ['end the look-back', (model) => model.endLookBack()],
  ),
  fc.constantFrom<Step[]>(
    ['begin to find', (model) => model.beginFind()],
    ['end finding', (model) => model.endFind()],
  ),
  fc.constantFrom<Step[]>(
    ['end the claim', (model) => model.endClaim()],
    ['look again', (model) => model.lookAgain()],
  ),
  pick.map((which) => [`finish ${which}`, (model) => model.finish(which)]),
  pick.map((which) => [`cancel ${which}`, (model) => model.cancel(which)]),
  fc.constantFrom(1, 400, 1_600, 30_000).map((ms) => [`wait ${ms}`, (model) => model.advance(ms)]),
];

const HOUR_MS = 3_600_000;
/** Many small worlds take their time on a busy machine. */
const PATIENCE_MS = 30_000;

function expectNothingForgotten(model: BacklogModel): void {
  model.drain();
  const now = model.clock.now();
  expect(model.waiting().filter((job) => job.runAt <= now)).toEqual([]);
  model.advance(HOUR_MS);
  model.drain();
  expect(model.waiting()).toEqual([]);
  expect(model.violations).toEqual([]);
  expect(new Set(model.started).size).toBe(model.started.length);
}

const anySteps = fc.array(fc.oneof(...covered, ...exempt), { maxLength: 80, size: 'max' });
const takeover: fc.Arbitrary<Step> = fc.constant(['a new leader', (model) => model.restart()]);
const stepsOfLeaders = fc.array(fc.oneof(...covered, ...exempt, takeover), { maxLength: 80, size: 'max' });
const coveredSteps = fc.array(fc.oneof(...covered), { maxLength: 80, size: 'max' });

describe('a backlog with little room', { timeout: PATIENCE_MS }, () => {
  it('forgets no job, gives none out early or while it is taken, and never reads in circles', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const model = new BacklogModel(4);
        for (const [, run] of steps) run(model);
        expectNothingForgotten(model);
      }),
      { numRuns: 400 },
    );
  });

  it('holds no more than it may when every job came by a hint or a page', () => {
    fc.assert(
      fc.property(coveredSteps, (steps) => {
        const model = new BacklogModel(8);
        for (const [, run] of steps) run(model);
        expectNothingForgotten(model);
      }),
      { numRuns: 150 },
    );
  });

  it('finds everything when new leaders begin with what runs, and with the table', () => {
    fc.assert(
      fc.property(fc.array(newJob, { maxLength: 60, size: 'max' }), stepsOfLeaders, (jobs, steps) => {
        const model = new BacklogModel(8);
        for (const job of jobs) model.submit(job, 'now');
        model.restart();
        for (const [, run] of steps) run(model);
        expectNothingForgotten(model);
      }),
      { numRuns: 150 },
    );
  });
});

describe('a backlog that knows every job', () => {
  it('gives the due jobs of a queue out by priority, then due time, then id', () => {
    fc.assert(
      fc.property(fc.array(newJob, { maxLength: 60, size: 'max' }), (jobs) => {
        const model = new BacklogModel(1_000);
        for (const job of jobs) model.submit({ ...job, queue: 1, key: null }, 'now');
        const due = model.waiting().filter((job) => job.runAt <= model.clock.now());
        due.sort((a, b) => a.rank - b.rank || a.runAt - b.runAt || (a.id < b.id ? -1 : 1));
        model.beginClaim(Number.POSITIVE_INFINITY, () => true);
        model.endClaim();
        expect(model.started).toEqual(due.map((job) => `${job.id}#1`));
      }),
    );
  });
});
