import { expect, it } from 'vitest';
import { EventRing, ringEntry } from './event-ring.js';

const LIMITS = { events: 100, characters: 10_000 };
const entry = (text: string) => ringEntry('job.started', { job: text }, text);
const texts = (ring: EventRing, sequence: number, characters?: number) =>
  ring.after(sequence, characters)?.map(({ text }) => text) ?? null;

it('a ring tells what came after a number, and nothing about numbers that it does not know', () => {
  const ring = new EventRing(7);
  expect([ring.base, ring.last]).toEqual([7, 7]);
  expect(texts(ring, 7)).toEqual([]);
  for (const text of ['a', 'b', 'c']) ring.add(entry(text), LIMITS);
  expect(ring.last).toBe(10);
  expect(texts(ring, 7)).toEqual(['a', 'b', 'c']);
  expect(texts(ring, 9)).toEqual(['c']);
  expect(texts(ring, 10)).toEqual([]);
  expect(texts(ring, 6)).toBeNull();
  expect(texts(ring, 11)).toBeNull();
});

it('a ring keeps so many events and so many characters, the newest ones', () => {
  const ring = new EventRing(0);
  for (let n = 1; n <= 1_000; n++) ring.add(entry(String(n)), { events: 3, characters: 10_000 });
  expect([ring.base, ring.last]).toEqual([997, 1_000]);
  expect(texts(ring, 997)).toEqual(['998', '999', '1000']);
  expect(texts(ring, 996)).toBeNull();
  ring.add(entry('x'.repeat(8)), { events: 3, characters: 10 });
  expect(texts(ring, ring.base)).toEqual(['x'.repeat(8)]);
  ring.add(entry('y'.repeat(11)), { events: 3, characters: 10 });
  expect([ring.base, ring.last]).toEqual([1_002, 1_002]);
});

it('a portion ends after so many characters, and holds at least one event', () => {
  const ring = new EventRing(0);
  for (const text of ['aaaa', 'bbbb', 'cccc']) ring.add(entry(text), LIMITS);
  expect(texts(ring, 0, 1)).toEqual(['aaaa']);
  expect(texts(ring, 0, 5)).toEqual(['aaaa', 'bbbb']);
  expect(texts(ring, 2, 100)).toEqual(['cccc']);
});
