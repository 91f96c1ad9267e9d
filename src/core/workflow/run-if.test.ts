import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  expectedEnds,
  type ModelGraph,
  type ModelOutcome,
  WorkflowModel,
} from '../../../test/workflow-oracle.js';
import type { RunIf, StepEnd } from '../workflow.js';
import { checkGraph } from './graph.js';
import { graphs } from './graphs.fixture.js';
import { decideStep, endOfWorkflow, weightOf } from './run-if.js';

/** Runs a graph by counters, as the server does, always the step next that `choose` picks. */
async function runByCounters(
  jobs: Readonly<Record<string, { readonly after: readonly string[]; readonly runIf: RunIf }>>,
  outcomeOf: (step: string) => ModelOutcome,
  choose: (among: number) => number,
) {
  const edges = Object.entries(jobs).map(([name, { after }]) => [name, { after }] as const);
  const steps = (await checkGraph(Object.fromEntries(edges))).steps!;
  const left = steps.map(({ parents }) => parents.length);
  const ok = steps.map(() => 0);
  const bad = steps.map(() => 0);
  const ends = new Map<string, StepEnd>();
  const open = [...steps.keys()].filter((step) => left[step] === 0);
  while (open.length > 0) {
    const [step] = open.splice(choose(open.length), 1) as [number];
    const { name, parents, children } = steps[step]!;
    const counts = { parents: parents.length, ok: ok[step]!, bad: bad[step]! };
    const end = decideStep({ runIf: jobs[name]!.runIf, ...counts }) === 'run' ? outcomeOf(name) : 'skipped';
    ends.set(name, end);
    const weight = weightOf(end, bad[step]!);
    for (const child of children) {
      if (weight === 'ok') ok[child]! += 1;
      if (weight === 'bad') bad[child]! += 1;
      left[child]! -= 1;
      if (left[child] === 0) open.push(child);
    }
  }
  const isBad = [...ends.values()].filter((end) => end === 'failed' || end === 'cancelled').length;
  return { steps: ends, state: endOfWorkflow(false, isBad) };
}

describe('whether a step runs', () => {
  it.each<[RunIf, number, number, number, 'run' | 'skip']>([
    ['all-succeeded', 0, 0, 0, 'run'],
    ['all-succeeded', 2, 2, 0, 'run'],
    ['all-succeeded', 2, 1, 0, 'skip'],
    ['all-finished', 2, 0, 2, 'run'],
    ['any-failed', 2, 1, 1, 'run'],
    ['any-failed', 2, 2, 0, 'skip'],
    ['any-failed', 0, 0, 0, 'skip'],
    ['any-succeeded', 2, 1, 1, 'run'],
    ['any-succeeded', 2, 0, 1, 'skip'],
  ])('%s of %i parents, %i ok, %i bad: %s', (runIf, parents, ok, bad, decision) => {
    expect(decideStep({ runIf, parents, ok, bad })).toBe(decision);
  });

  it('lets a failure through the steps that are skipped because of it, to an alert at the end of a chain', async () => {
    const jobs = {
      a: { after: [], runIf: 'all-succeeded' },
      b: { after: ['a'], runIf: 'all-succeeded' },
      c: { after: ['b'], runIf: 'all-succeeded' },
      alert: { after: ['c'], runIf: 'any-failed' },
    } as const;
    const { steps, state } = await runByCounters(
      jobs,
      (step) => (step === 'a' ? 'failed' : 'succeeded'),
      () => 0,
    );
    expect(Object.fromEntries(steps)).toEqual({
      a: 'failed',
      b: 'skipped',
      c: 'skipped',
      alert: 'succeeded',
    });
    expect(state).toBe('failed');
  });

  it('counts an alert that had nothing to tell as neither good nor bad', async () => {
    const jobs = {
      a: { after: [], runIf: 'all-succeeded' },
      alert: { after: ['a'], runIf: 'any-failed' },
      second: { after: ['alert'], runIf: 'any-failed' },
      always: { after: ['alert'], runIf: 'all-finished' },
    } as const;
    const { steps, state } = await runByCounters(
      jobs,
      () => 'succeeded',
      () => 0,
    );
    expect(Object.fromEntries(steps)).toEqual({
      a: 'succeeded',
      alert: 'skipped',
      second: 'skipped',
      always: 'succeeded',
    });
    expect(state).toBe('succeeded');
  });

  it('comes to the ends of the model on every graph, in whatever order its steps end', async () => {
    await fc.assert(
      fc.asyncProperty(
        graphs(),
        fc.array(fc.constantFrom<ModelOutcome>('succeeded', 'succeeded', 'failed', 'cancelled'), {
          minLength: 20,
          maxLength: 20,
        }),
        fc.array(fc.nat(), { minLength: 20, maxLength: 20 }),
        async (jobs, outcomes, choices) => {
          const names = Object.keys(jobs);
          const outcomeOf = (step: string) => outcomes[names.indexOf(step)]!;
          let turn = 0;
          const ours = await runByCounters(
            jobs,
            outcomeOf,
            (among) => choices[turn++ % choices.length]! % among,
          );
          const graph: ModelGraph = { steps: jobs, onFailure: 'continue', running: 'finish' };
          const model = expectedEnds(graph, outcomeOf);
          expect(new Map([...ours.steps].sort())).toEqual(new Map([...model.steps].sort()));
          expect(ours.state).toBe(model.state);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('ends every workflow of the model, stopped or cancelled at any moment', () => {
    fc.assert(
      fc.property(
        graphs(),
        fc.constantFrom('stop', 'continue'),
        fc.constantFrom('finish', 'cancel'),
        fc.array(fc.nat(9), { minLength: 60, maxLength: 60 }),
        (steps, onFailure, running, choices) => {
          const model = new WorkflowModel({ steps, onFailure, running });
          for (const choice of choices) {
            const started = [...model.running][0];
            const ready = model.ready();
            if (model.state !== 'running') break;
            if (choice === 9) model.cancel();
            else if (ready.length > 0 && choice % 2 === 0) model.start(ready[choice % ready.length]!);
            else if (started !== undefined) model.end(started, choice > 6 ? 'failed' : 'succeeded');
            else model.start(ready[0]!);
          }
          for (
            let [step] = [...model.running, ...model.ready()];
            step !== undefined;
            [step] = [...model.running, ...model.ready()]
          ) {
            if (!model.running.has(step)) model.start(step);
            model.end(step, 'succeeded');
          }
          expect(model.state).not.toBe('running');
        },
      ),
    );
  });
});
