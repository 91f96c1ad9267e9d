import { expect, it } from 'vitest';
import { rangeOf } from './artifact-downloads.js';

it.each<[string | null, unknown]>([
  [null, null],
  ['bytes=0-0', { start: 0, end: 1 }],
  ['bytes=5-', { start: 5, end: 10 }],
  ['bytes=-3', { start: 7, end: 10 }],
  ['bytes=-30', { start: 0, end: 10 }],
  ['bytes=9-99', { start: 9, end: 10 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=5-4', null],
  ['bytes=-', null],
  ['bytes=0-1,3-4', null],
  ['lines=1-2', null],
  ['bytes=a-b', null],
  [`bytes=${'9'.repeat(16)}-`, null],
])('of ten bytes, the range %s', (header, expected) => {
  expect(rangeOf(header, 10)).toEqual(expected);
});
