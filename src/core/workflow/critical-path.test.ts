import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { criticalPath, longestSteps, type TimedStep } from './critical-path.js';

const ended = (finishedAt: number, ...parents: number[]): TimedStep => ({
  ...{ state: 'succeeded', finishedAt, parents },
});
const open = (state: 'running' | 'pending' | 'blocked', ...parents: number[]): TimedStep => ({
  ...{ state, finishedAt: null, parents },
});

describe('the critical path', () => {
  it('goes back from the last end through the parents that ended last', () => {
    const steps = [ended(10), ended(50, 0), ended(30, 0), ended(60, 1, 2)];
    expect(criticalPath(steps, 0, 999)).toEqual([
      { index: 0, from: 0, until: 10 },
      { index: 1, from: 10, until: 50 },
      { index: 3, from: 50, until: 60 },
    ]);
  });

  it('of a workflow that runs leads to the step that has been there for longest', () => {
    const steps = [ended(10), ended(20, 0), open('running', 0), open('pending', 1), open('blocked', 2, 3)];
    expect(criticalPath(steps, 0, 100)).toEqual([
      { index: 0, from: 0, until: 10 },
      { index: 2, from: 10, until: 100 },
    ]);
  });

  it('ends with a step that was skipped only if all were', () => {
    const skipped = (finishedAt: number, ...parents: number[]): TimedStep => ({
      ...{ state: 'skipped', finishedAt, parents },
    });
    expect(criticalPath([ended(10), ended(40), skipped(90, 0)], 0, 100).map(({ index }) => index)).toEqual([
      1,
    ]);
    expect(criticalPath([skipped(5), skipped(6, 0)], 0, 100).map(({ index }) => index)).toEqual([0, 1]);
  });

  it('goes from a step that was added to the one that added it, as far as that had come', () => {
    const plan = ended(50);
    const page = { ...ended(40), added: { by: 0, at: 20 } };
    const join = { ...ended(60, 1), added: { by: 0, at: 20 } };
    expect(criticalPath([plan, page, join, ended(80, 0, 2)], 0, 999)).toEqual([
      { index: 0, from: 0, until: 20 },
      { index: 1, from: 20, until: 40 },
      { index: 2, from: 40, until: 60 },
      { index: 3, from: 60, until: 80 },
    ]);
    const late = { ...open('pending', 0), added: { by: 1, at: 30 } };
    expect(criticalPath([ended(10), open('running', 0), late], 0, 99)).toEqual([
      { index: 0, from: 0, until: 10 },
      { index: 1, from: 10, until: 99 },
    ]);
  });

  it('leaves out a parent that was run again after the step', () => {
    expect(criticalPath([ended(500), ended(20), ended(30, 0, 1)], 0, 999).at(-1)).toEqual({
      ...{ index: 0, from: 0, until: 500 },
    });
    expect(criticalPath([ended(29, 1), ended(500), open('running', 0)], 0, 999).at(-1)!.from).toBe(29);
  });

  const graphs = fc
    .array(
      fc.record({
        took: fc.nat(100),
        isOpen: fc.boolean(),
        parents: fc.array(fc.nat(), { maxLength: 4 }),
      }),
      { minLength: 1, maxLength: 40 },
    )
    .map((forms) => {
      const steps: TimedStep[] = [];
      for (const { took, isOpen, parents } of forms) {
        const theirs = steps.length === 0 ? [] : [...new Set(parents.map((each) => each % steps.length))];
        const isBlocked = theirs.some((parent) => steps[parent]!.finishedAt === null);
        const from = theirs.reduce((at, parent) => Math.max(at, steps[parent]!.finishedAt ?? 0), 7);
        if (isBlocked) steps.push(open('blocked', ...theirs));
        else steps.push(isOpen ? open('running', ...theirs) : ended(from + took, ...theirs));
      }
      return steps;
    });

  it('is a chain of the graph whose times add up from the submission to its end', () => {
    fc.assert(
      fc.property(graphs, (steps) => {
        const now = 100_000;
        const path = criticalPath(steps, 7, now);
        expect(path[0]!.from).toBe(7);
        for (const [i, { index, from, until }] of path.entries()) {
          expect(until).toBeGreaterThanOrEqual(from);
          expect(until).toBe(steps[index]!.finishedAt ?? now);
          const before = path[i - 1];
          if (!before) expect(steps[index]!.parents).toEqual([]);
          else {
            expect(from).toBe(before.until);
            expect(steps[index]!.parents).toContain(before.index);
            // No parent kept the step waiting for longer.
            for (const parent of steps[index]!.parents)
              expect(steps[parent]!.finishedAt!).toBeLessThanOrEqual(before.until);
          }
        }
        const isOver = steps.every(({ finishedAt }) => finishedAt !== null);
        const end = isOver ? Math.max(...steps.map(({ finishedAt }) => finishedAt!)) : now;
        expect(path.at(-1)!.until).toBe(end);
      }),
      { numRuns: 1_000 },
    );
  });

  it('of which only some are listed lists the longest in their order', () => {
    const path = [5, 1, 9, 2].map((length, index) => ({
      index,
      from: 100 * index,
      until: 100 * index + length,
    }));
    expect(longestSteps(path, 2)).toEqual({ steps: [path[0], path[2]], left: 2 });
    expect(longestSteps(path, 4)).toEqual({ steps: path, left: 0 });
  });
});
