import { expect, it } from 'vitest';
import type { StepAttempt, Workflow, WorkflowStepView } from '../../../../src/core/workflow.js';
import { ganttOf } from './gantt-rows.js';

const BEGIN = Date.UTC(2026, 0, 1);
const at = (ms: number) => new Date(BEGIN + ms).toISOString();

function step(more: Partial<WorkflowStepView>): WorkflowStepView {
  return {
    ...{ id: 'id', state: 'succeeded', after: [], runIf: 'all-succeeded', addedBy: null, workflow: null },
    ...{ waitsFor: null, finishedAt: null, readyAt: null, attempts: [], ...more },
  };
}

const attempt = (from: number, to: number | null, outcome: StepAttempt['outcome']): StepAttempt => ({
  ...{ fence: 1, startedAt: at(from), finishedAt: to === null ? null : at(to), outcome },
});

const chart = (jobs: Record<string, WorkflowStepView>, now: number) =>
  ganttOf({ jobs, createdAt: at(0), endedAt: null } as unknown as Workflow, BEGIN + now);

const spansOf = (view: WorkflowStepView, now: number) =>
  chart({ a: view }, now).rows[0]!.spans.map(({ kind, from, to }) => [kind, from - BEGIN, to - BEGIN]);

it('a step waits until its first attempt, backs off between two, and runs until now', () => {
  const attempts = [attempt(30, 50, 'failed'), attempt(80, null, null)];
  expect(spansOf(step({ state: 'running', readyAt: at(10), attempts }), 100)).toEqual([
    ['waiting', 10, 30],
    ['running', 30, 50],
    ['backoff', 50, 80],
    ['running', 80, 100],
  ]);
  const between = step({ state: 'pending', readyAt: at(10), attempts: attempts.slice(0, 1) });
  expect(spansOf(between, 70).at(-1)).toEqual(['backoff', 50, 70]);
});

it('a wait only waits, a step that is not ready or was skipped has done nothing, and no clock makes time run backwards', () => {
  expect(spansOf(step({ readyAt: at(10), finishedAt: at(40) }), 100)).toEqual([['waiting', 10, 40]]);
  expect(spansOf(step({ state: 'blocked' }), 100)).toEqual([]);
  expect(spansOf(step({ state: 'skipped', readyAt: at(10), finishedAt: at(40) }), 100)).toEqual([]);
  const early = step({ readyAt: at(10), finishedAt: at(20), attempts: [attempt(5, 20, 'succeeded')] });
  expect(spansOf(early, 100)).toEqual([['running', 10, 20]]);
});

it('steps stand in the order in which they could run, and the time reaches over all of them', () => {
  const ran = (from: number, to: number) =>
    step({ readyAt: at(from), finishedAt: at(to), attempts: [attempt(from, to, 'succeeded')] });
  const { rows, from, to } = chart({ last: step({ state: 'blocked' }), b: ran(20, 90), a: ran(0, 20) }, 60);
  expect(rows.map(({ name }) => name)).toEqual(['a', 'b', 'last']);
  expect([from - BEGIN, to - BEGIN]).toEqual([0, 90]);
});
