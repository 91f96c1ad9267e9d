import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { LineSampler, OTHER_SUBJECTS } from './line-sampler.js';

function sampler() {
  const clock = new TestClock();
  const leftOut: (readonly [string, number])[] = [];
  return {
    clock,
    leftOut,
    lines: new LineSampler(clock, (subject, count) => leftOut.push([subject, count])),
  };
}

const writes = (lines: LineSampler, subject: string, times: number): number =>
  Array.from({ length: times }, () => lines.allows(subject)).filter(Boolean).length;

it('writes a few lines of each subject in a second, and then how many it left out', () => {
  const { clock, lines, leftOut } = sampler();
  expect(writes(lines, 'greet', 10_000)).toBe(5);
  expect(writes(lines, 'other', 2)).toBe(2);
  expect(leftOut).toEqual([]);
  clock.advance(1_000);
  expect(leftOut).toEqual([['greet', 9_995]]);
  expect(writes(lines, 'greet', 3)).toBe(3);
  clock.advance(1_000);
  expect(leftOut).toHaveLength(1);
});

it('tells what it left out when it is closed before the second is over', () => {
  const { lines, leftOut, clock } = sampler();
  writes(lines, 'greet', 7);
  lines.close();
  expect(leftOut).toEqual([['greet', 2]]);
  clock.advance(5_000);
  expect(leftOut).toHaveLength(1);
});

it('is bounded however many subjects there are, and loses no count', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(200), { maxLength: 2_000 }), (subjects) => {
      const { lines, leftOut } = sampler();
      const written = subjects.filter((subject) => lines.allows(`task-${subject}`)).length;
      lines.close();
      expect(written).toBeLessThanOrEqual(50);
      expect(leftOut.length).toBeLessThanOrEqual(51);
      expect(written + leftOut.reduce((sum, [, count]) => sum + count, 0)).toBe(subjects.length);
    }),
  );
});

it('counts subjects beyond the first fifty together', () => {
  const { lines, leftOut } = sampler();
  for (let subject = 0; subject < 60; subject++) lines.allows(`task-${subject}`);
  lines.close();
  expect(leftOut).toEqual([[OTHER_SUBJECTS, 10]]);
});
