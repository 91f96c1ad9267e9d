import { expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { dataOf } from '../core/event-ring.js';
import type { PunctualEvent } from '../core/events.js';
import type { QueueInfo } from './directory.js';
import { EventRecorder, type Hearing } from './event-recorder.js';
import type { Running } from './running.js';

function recorder() {
  const clock = new TestClock();
  const directory = { queue: () => ({ name: 'mail' }) as QueueInfo };
  return { clock, events: new EventRecorder(7, clock, directory) };
}

const running = (tenant: string, id = 'j1') =>
  ({ id, tenant, queue: 1, fence: 2, worker: 'w1', facts: { task: 'send', schedule: null } }) as Running;

const told = ({ ring }: Hearing): PunctualEvent[] =>
  ring.after(ring.base)!.map((entry) => JSON.parse(dataOf(entry)) as PunctualEvent);

it('events reach the ring of their tenant and that of all, each with numbers of its own', () => {
  const { events, clock } = recorder();
  const one = events.hear('one', () => undefined);
  clock.advance(1);
  const all = events.hear('*', () => undefined);
  events.started([{ running: running('one') }, { running: running('two') }]);
  expect(told(one).map(({ tenant }) => tenant)).toEqual(['one']);
  expect(told(all).map(({ tenant }) => tenant)).toEqual(['one', 'two']);
  expect(told(all)[1]).toEqual({
    ...{ id: `7.${all.ring.base + 2}`, type: 'job.started', at: new Date(clock.now()).toISOString() },
    ...{ tenant: 'two', job: 'j1', queue: 'mail', task: 'send', attempt: 2, worker: 'w1', state: 'running' },
  });
  events.dispose();
});

it('the progress of a job is told once a second at most', () => {
  const { events, clock } = recorder();
  const heard = events.hear('one', () => undefined);
  const [first, second] = [running('one', 'a'), running('one', 'b')];
  events.progressed(first, 0.1);
  events.progressed(first, 0.2);
  events.progressed(second, 0.3);
  clock.advance(1_000);
  events.progressed(first, 0.4);
  expect(told(heard).map(({ job, progress }) => [job, progress])).toEqual([
    ['a', 0.1],
    ['b', 0.3],
    ['a', 0.4],
  ]);
  events.dispose();
});

it('a ring that was given up and is opened again never repeats a number', () => {
  const { events, clock } = recorder();
  const first = events.hear('one', () => undefined);
  events.started(Array.from({ length: 10_000 }, () => ({ running: running('one') })));
  const { last } = first.ring;
  first.stop();
  clock.advance(60_000);
  expect(events.isHeard).toBe(false);
  events.started([{ running: running('one') }]);
  expect(first.ring.last).toBe(last);
  const second = events.hear('one', () => undefined);
  expect(second.ring.base).toBeGreaterThan(last);
  events.dispose();
});

it('there are so many rings; one that nobody hears makes room for another', () => {
  const { events } = recorder();
  const hearings = Array.from({ length: 256 }, (_, i) => events.hear(`tenant-${i}`, () => undefined));
  expect(() => events.hear('another', () => undefined)).toThrow(
    expect.objectContaining({ code: 'TOO_MANY_LISTENERS' }),
  );
  hearings[3]!.stop();
  events.hear('another', () => undefined);
  expect(events.ringCount).toBe(256);
  events.dispose();
  expect([events.isHeard, events.ringCount]).toEqual([false, 0]);
});
