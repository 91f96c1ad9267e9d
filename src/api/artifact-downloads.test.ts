import { expect, it } from 'vitest';
import { dispositionOf, rangeOf } from './artifact-downloads.js';

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

it.each<[object, string]>([
  [{ name: 'packer', version: '1.0' }, 'filename="packer-1.0"'],
  [{}, 'filename="an-id"'],
  [{ output: 'result.txt' }, "filename*=UTF-8''result.txt"],
  [{ output: 'deep/in/page.html' }, "filename*=UTF-8''page.html"],
  [{ output: `"; x='(ü)*!` }, "filename*=UTF-8''%22%3B%20x%3D%27%28%C3%BC%29%2A!"],
])('the bytes of %o are saved as %s', (fields, expected) => {
  const artifact = { id: 'an-id', name: null, version: null, output: null, ...fields };
  expect(dispositionOf(artifact)).toBe(`attachment; ${expected}`);
});
