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
