import { setImmediate as nextIteration } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Queryable } from '../store/database.js';
import { Directory } from './directory.js';

/** More names than are kept when nothing uses them. */
const MANY = 25_000;

/** A directory of which nothing is in use, over tables that have every name, and answer when they are told to. */
function unusedDirectory() {
  const held: (() => void)[] = [];
  let holds = false;
  const query = async ({ name, values }: { name: string; values: [number[]] }) => {
    if (holds) await new Promise<void>((resolve) => held.push(resolve));
    if (name === 'read-tenants') return { rows: [] };
    return {
      rows: values[0].map((id) => ({ id, tenant: 'acme', name: `q${id}`, handler: 'h', labels: '' })),
    };
  };
  const directory = new Directory({ query } as unknown as Queryable, {
    isQueueInUse: () => false,
    isNeedsInUse: () => false,
    onNeedsForgotten: () => undefined,
  });
  return {
    directory,
    hold: () => {
      holds = true;
    },
    release: () => {
      holds = false;
      for (const resolve of held.splice(0)) resolve();
    },
  };
}

const many = Array.from({ length: MANY }, (_, i) => ({ queue: i + 10, needs: i + 10 }));

it('names that nothing uses are forgotten when they become many', async () => {
  const { directory } = unusedDirectory();
  await directory.learn(many);
  expect(directory.knows(many[0]!)).toBe(true);
  await nextIteration();
  expect(directory.knows(many[0]!)).toBe(false);
});

it('nobody loses what he knew when he began to learn, or has just learned, however many others are learned meanwhile', async () => {
  const { directory, hold, release } = unusedDirectory();
  await directory.learn([{ queue: 1, needs: 1 }]);
  await directory.learn(many);
  hold();
  const learned = directory.learn([
    { queue: 1, needs: 1 },
    { queue: 2, needs: 2 },
  ]);
  // What the many had set off would have been done by now.
  await nextIteration();
  await nextIteration();
  release();
  await learned;
  expect(directory.knows({ queue: 1, needs: 1 })).toBe(true);
  expect(directory.knows({ queue: 2, needs: 2 })).toBe(true);
});
