import { expect, it } from 'vitest';
import { CompiledFilter, type EventFilter, type FilteredEvent, parseEventId } from './events.js';

const EVENT: FilteredEvent = {
  type: 'job.failed',
  job: 'j1',
  queue: 'mail',
  task: 'send',
  schedule: undefined,
  workflow: 'w1',
  batch: undefined,
};
const passes = (filter: EventFilter) => new CompiledFilter(filter).matches(EVENT);

it('a filter lets through what everything applies to that is given, and of a list any', () => {
  expect(passes({})).toBe(true);
  expect(passes({ types: ['job.started', 'job.failed'] })).toBe(true);
  expect(passes({ types: ['job.*'], queue: ['mail'] })).toBe(true);
  expect(passes({ types: ['job.started'] })).toBe(false);
  expect(passes({ types: ['queue.*'] })).toBe(false);
  expect(passes({ types: ['job.*'], queue: ['other'] })).toBe(false);
  expect(passes({ task: ['send'], job: ['j2', 'j1'] })).toBe(true);
  expect(passes({ schedule: ['nightly'] })).toBe(false);
  expect(passes({ workflow: ['w2', 'w1'] })).toBe(true);
  expect(passes({ workflow: ['w1'], batch: ['b1'] })).toBe(false);
});

it('filters that let the same through have the same key, others do not', () => {
  const key = (filter: EventFilter) => new CompiledFilter(filter).key;
  expect(key({ types: ['job.failed', 'job.started'], queue: ['a', 'b'] })).toBe(
    key({ types: ['job.started', 'job.failed', 'job.failed'], queue: ['b', 'a'] }),
  );
  expect(key({ types: ['leader.*'] })).toBe(key({ types: ['leader.elected'] }));
  expect(key({ queue: ['a'] })).not.toBe(key({ task: ['a'] }));
  expect(key({})).not.toBe(key({ types: ['job.*'] }));
});

it('an id of an event is an epoch and a number', () => {
  expect(parseEventId('7.12')).toEqual({ epoch: 7, sequence: 12 });
  for (const wrong of ['', '7', '7.', '.1', 'a.b', '7.12.1', '-1.2', '7.1234567890123456'])
    expect(parseEventId(wrong)).toBeNull();
});
