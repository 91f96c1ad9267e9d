import { expect, it } from 'vitest';
import { Stride } from './job-search.js';

const PAYLOAD = [{ path: ['a'], kind: 'number', value: '1' }] as const;

it('a statement examines more while that takes no time, and fewer after it did or when enough was found', () => {
  const stride = new Stride({}, 200);
  const after = (ms: number, full = false) => {
    stride.took(ms, full);
    return stride.rows;
  };
  expect([after(1), after(1), after(30), after(60), after(1, true), after(500), after(500)]).toEqual([
    1_600, 10_000, 10_000, 2_500, 625, 156, 100,
  ]);
});

it('payloads are parsed few at a time, however quick the rows before were', () => {
  const stride = new Stride({ payload: PAYLOAD });
  expect(stride.rows).toBe(100);
  for (let i = 0; i < 5; i++) stride.took(0, false);
  expect(stride.rows).toBe(1_000);
  expect(new Stride({}).rows).toBe(10_000);
});

it('queues are looked into while most live rows are of others, unless the tenant has too much in them', () => {
  const stride = new Stride({});
  const after = (live: number, others: number, few: boolean | null = null) => {
    stride.met({ live, others, few });
    return stride.byQueue;
  };
  expect([after(100, 0), after(100, 49), after(100, 50), after(60, 49)]).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect([after(100, 60), after(3, 0, true), after(0, 0, true)]).toEqual([true, true, true]);
  expect([after(1_000, 999, false), after(1_000, 999)]).toEqual([false, false]);
});
