import { expect, it } from 'vitest';
import { SharedRun } from './shared-run.js';

/** Work whose runs the test ends, in the order in which they began. */
function work() {
  const runs: PromiseWithResolvers<number>[] = [];
  const shared = new SharedRun(() => {
    const run = withResolvers<number>();
    runs.push(run);
    return run.promise;
  });
  return { runs, shared };
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let [resolve, reject]: [(value: T) => void, (error: Error) => void] = [() => undefined, () => undefined];
  const promise = new Promise<T>((res, rej) => {
    [resolve, reject] = [res, rej];
  });
  return { promise, resolve, reject };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('all who ask during a run share the next one, and nobody gets the outcome of one that had begun', async () => {
  const { runs, shared } = work();
  const first = [shared.ask(), shared.ask()];
  await turn();
  expect(runs).toHaveLength(1);
  const second = Array.from({ length: 100 }, () => shared.ask());
  await turn();
  expect(runs).toHaveLength(1);
  runs[0]!.resolve(1);
  expect(await Promise.all(first)).toEqual([1, 1]);
  await turn();
  expect(runs).toHaveLength(2);
  runs[1]!.resolve(2);
  expect(new Set(await Promise.all(second))).toEqual(new Set([2]));
  await turn();
  expect(runs).toHaveLength(2);
});

it('a run that fails is told to those who asked for it, and the next one begins', async () => {
  const { runs, shared } = work();
  const first = shared.ask();
  await turn();
  const second = shared.ask();
  runs[0]!.reject(new Error('no answer'));
  await expect(first).rejects.toThrow('no answer');
  await turn();
  runs[1]!.resolve(2);
  expect(await second).toBe(2);
});
