import { expect, it } from 'vitest';
import { MemoryLog } from '../../test/memory-log.js';
import { TestClock } from '../../test/test-clock.js';
import { FailureLog } from './failure-log.js';

it('writes a few lines about each task in a second, then how many jobs it left out', () => {
  const log = new MemoryLog();
  const clock = new TestClock();
  const failures = new FailureLog(log, clock);
  for (let job = 0; job < 10_000; job++)
    failures.failed({ id: `${job}`, tenant: 't', task: 'a' }, { message: 'x'.repeat(9_000), code: 'C' });
  failures.failed({ id: 'other', tenant: 't', task: null }, { message: 'y' });
  expect(log.messages()).toEqual([
    ...Array(5).fill('a job of a has failed for good'),
    'a job has failed for good',
  ]);
  expect((log.lines[0]!.fields.error as string).length).toBe(500);
  clock.advance(1_000);
  expect(log.lines.at(-1)).toMatchObject({ fields: { count: 9_995, of: 't/a' } });
});

it('tells of what it left out when its term is over', () => {
  const log = new MemoryLog();
  const failures = new FailureLog(log, new TestClock());
  for (let job = 0; job < 6; job++)
    failures.failed({ id: `${job}`, tenant: 't', task: 'a' }, { message: 'x' });
  failures.close();
  expect(log.lines.at(-1)).toMatchObject({ fields: { count: 1 } });
});
