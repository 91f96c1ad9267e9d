import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { graphs } from '../src/core/workflow/graphs.fixture.js';
import { type ModelGraph, type ObservedWorkflow, WorkflowModel, wrongEnds } from './workflow-oracle.js';

/** Runs a model by random choices and records what an observer would see. */
function observe(graph: ModelGraph, choices: readonly number[]): ObservedWorkflow {
  const model = new WorkflowModel(graph);
  const times = new Map<string, { start: number; end: number }>();
  let cancelled = false;
  for (let now = 0; model.state === 'running'; now++) {
    const choice = choices[now % choices.length]!;
    const ready = model.ready();
    const running = [...model.running];
    const isStarting = ready.length > 0 && (running.length === 0 || choice % 2 === 0);
    if (choice === 19) {
      model.cancel();
      cancelled = true;
    } else if (isStarting) {
      const step = ready[choice % ready.length]!;
      model.start(step);
      times.set(step, { start: now, end: now });
    } else {
      const step = running[choice % running.length]!;
      model.end(step, choice > 15 ? 'failed' : 'succeeded');
    }
    for (const step of running) if (model.ends.has(step)) times.get(step)!.end = now;
  }
  const steps = Object.fromEntries(
    [...model.ends].map(([name, state]) => {
      const time = times.get(name);
      return [name, { state, starts: time ? [time.start] : [], endedAt: time?.end ?? null }];
    }),
  );
  return { state: model.state, cancelled, steps };
}

const models = fc.record({
  steps: graphs(10),
  onFailure: fc.constantFrom('stop', 'continue'),
  running: fc.constantFrom('finish', 'cancel'),
});
const choices = fc.array(fc.nat(19), { minLength: 50, maxLength: 50 });

const DIAMOND: ModelGraph = {
  steps: {
    a: { after: [], runIf: 'all-succeeded' },
    b: { after: ['a'], runIf: 'all-succeeded' },
    c: { after: ['a'], runIf: 'all-succeeded' },
    d: { after: ['b', 'c'], runIf: 'all-succeeded' },
  },
  onFailure: 'continue',
  running: 'finish',
};

function ran(from: number, to: number, state = 'succeeded') {
  return { state, starts: [from], endedAt: to };
}

const GOOD: ObservedWorkflow = {
  state: 'succeeded',
  cancelled: false,
  steps: { a: ran(0, 1), b: ran(2, 5), c: ran(2, 3), d: ran(5, 6) },
};

function seen(state: string, steps: ObservedWorkflow['steps']): ObservedWorkflow {
  return { ...GOOD, state, steps: { ...GOOD.steps, ...steps } };
}

const SKIPPED = { state: 'skipped', starts: [], endedAt: null };

describe('the model of a workflow', () => {
  it('finds nothing wrong with a workflow that kept to it', () => {
    fc.assert(
      fc.property(models, choices, (graph, chosen) => {
        expect(wrongEnds(graph, observe(graph, chosen))).toEqual([]);
      }),
      { numRuns: 500 },
    );
    expect(wrongEnds(DIAMOND, GOOD)).toEqual([]);
  });

  it.each([
    [
      'a step without an end',
      seen('succeeded', { d: { ...SKIPPED, state: 'blocked' } }),
      'step d has not ended',
    ],
    [
      'a start before a parent ended',
      seen('succeeded', { d: ran(4, 6) }),
      'step d started before b had ended',
    ],
    [
      'a skip for no reason',
      seen('succeeded', { d: SKIPPED }),
      'step d was skipped although its runIf was met',
    ],
    [
      'a run after a failure',
      seen('failed', { b: ran(2, 5, 'failed') }),
      'step d ran although its runIf was not met',
    ],
    [
      'a success without a start',
      seen('succeeded', { d: { ...SKIPPED, state: 'succeeded' } }),
      'step d succeeded without a start',
    ],
    [
      'a skip after a start',
      seen('failed', { b: ran(2, 5, 'failed'), d: ran(5, 6, 'skipped') }),
      'step d was skipped although it had started',
    ],
    ['a wrong end of the whole', seen('failed', {}), 'the workflow is failed, not succeeded'],
  ])('catches %s', (_, observed, sentence) => {
    expect(wrongEnds(DIAMOND, observed)).toContain(sentence);
  });

  it('takes skips for granted once a failure has stopped the workflow', () => {
    const observed = seen('failed', { b: ran(2, 5, 'failed'), c: SKIPPED, d: SKIPPED });
    expect(wrongEnds({ ...DIAMOND, onFailure: 'stop' }, observed)).toEqual([]);
    expect(wrongEnds(DIAMOND, observed)).toEqual(['step c was skipped although its runIf was met']);
  });
});
