import { expect, it } from 'vitest';
import { CallTimes } from './call-times.js';

const ORIGIN = 'https://example.com';

it('the newest hundred calls of an origin tell how long its calls take', () => {
  const times = new CallTimes();
  expect(times.of('acme', ORIGIN)).toBeNull();
  times.add('acme', ORIGIN, 30);
  expect(times.of('acme', ORIGIN)).toEqual({ calls: 1, p50Ms: 30, p99Ms: 30 });
  for (let ms = 1; ms <= 100; ms += 1) times.add('acme', ORIGIN, ms);
  expect(times.of('acme', ORIGIN)).toEqual({ calls: 100, p50Ms: 50, p99Ms: 99 });
  // A worker's clock may be ahead.
  times.add('acme', 'https://other.example', -5);
  expect(times.of('acme', 'https://other.example')).toEqual({ calls: 1, p50Ms: 0, p99Ms: 0 });
});

it('tenants do not see the calls of each other, and what was not called for long is forgotten', () => {
  const times = new CallTimes();
  times.add('acme', ORIGIN, 1);
  for (let i = 0; i < 999; i += 1) times.add('globex', `https://${i}.example`, 1);
  times.add('acme', ORIGIN, 1);
  times.add('globex', 'https://one-more.example', 1);
  expect([...times.namesOf('acme')]).toEqual([ORIGIN]);
  expect(times.of('globex', ORIGIN)).toBeNull();
  expect(times.of('globex', 'https://0.example')).toBeNull();
  expect([...times.namesOf('globex')]).toHaveLength(999);
});
