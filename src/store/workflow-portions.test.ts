import { expect, it } from 'vitest';
import { NO_CHANGE, type StepChange, splitChanges } from './workflow-portions.js';

const change = (id: string, more: Partial<StepChange>): StepChange => ({ ...NO_CHANGE, id, ...more });

it('the steps that change in one way are the largest such group, in the order of their ids, and the rest are the others', () => {
  const ended = ['c', 'a', 'e'].map((id) => change(id, { outcome: 'succeeded', finishedAt: 5 }));
  const counted = ['d', 'b'].map((id) => change(id, { parentsLeft: 1, ok: 2, bad: 0 }));
  const { alike, others } = splitChanges([ended[0]!, counted[0]!, ended[1]!, counted[1]!, ended[2]!]);
  expect(alike.map(({ id }) => id)).toEqual(['a', 'c', 'e']);
  expect(others.map(({ id }) => id)).toEqual(['b', 'd']);
});

it('no step is lost, nor put with others than its like, however many ways of changing there are', () => {
  for (let round = 0; round < 200; round++) {
    const ways = 1 + Math.floor(Math.random() * 20);
    const steps = Array.from({ length: 60 }, (_, i) =>
      change(String(i).padStart(3, '0'), {
        parentsLeft: Math.floor(Math.random() * ways),
        released: i % 2 === 0,
      }),
    );
    const { alike, others } = splitChanges(steps);
    expect([...alike, ...others].map(({ id }) => id).sort()).toEqual(steps.map(({ id }) => id));
    expect(new Set(alike.map(({ parentsLeft, released }) => `${parentsLeft} ${released}`)).size).toBe(1);
  }
});
