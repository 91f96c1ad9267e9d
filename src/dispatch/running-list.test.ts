import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Running } from './running.js';
import { RunningList } from './running-list.js';

const job = () => ({ list: null, previous: null, next: null }) as unknown as Running;

it('holds what joined and has not left, the newest first, whatever the order of coming and going', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9)), (steps) => {
      const list = new RunningList();
      const jobs = Array.from({ length: 10 }, job);
      let expected: Running[] = [];
      for (const step of steps) {
        const running = jobs[step]!;
        if (expected.includes(running)) {
          list.remove(running);
          expected = expected.filter((each) => each !== running);
        } else {
          list.add(running);
          expected = [running, ...expected];
        }
        expect(list.all().map((each) => jobs.indexOf(each))).toEqual(
          expected.map((each) => jobs.indexOf(each)),
        );
        expect(list.size).toBe(expected.length);
      }
    }),
  );
});

it('lets nobody leave it who is in another', () => {
  const [one, another] = [new RunningList(), new RunningList()];
  const running = job();
  one.add(running);
  another.remove(running);
  expect([one.size, another.size]).toEqual([1, 0]);
  one.remove(running);
  one.remove(running);
  expect([one.size, running.list]).toEqual([0, null]);
});
