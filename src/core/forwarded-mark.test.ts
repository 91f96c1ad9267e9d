import { expect, it } from 'vitest';
import { forwardedFrom, isForwarded, signForwarded, signNodeToken } from './tokens.js';

const SECRET = Buffer.alloc(32, 7);
const NOW = Date.UTC(2026, 10, 17);

it('the mark of a forwarded request says where the request came from', () => {
  const mark = signForwarded(SECRET, 'n1', NOW, '198.51.100.7');
  expect(isForwarded(SECRET, mark, NOW)).toBe(true);
  expect(forwardedFrom(SECRET, mark, NOW)).toBe('198.51.100.7');
  expect(forwardedFrom(SECRET, signForwarded(SECRET, 'n1', NOW), NOW)).toBeNull();
});

it('a mark that is forged, expired or meant for something else says nothing', () => {
  const mark = signForwarded(SECRET, 'n1', NOW, '198.51.100.7');
  expect(forwardedFrom(Buffer.alloc(32, 8), mark, NOW)).toBeUndefined();
  expect(forwardedFrom(SECRET, mark, NOW + 120_000)).toBeUndefined();
  expect(forwardedFrom(SECRET, signNodeToken(SECRET, 'n1', NOW), NOW)).toBeUndefined();
  expect(forwardedFrom(SECRET, 'x.y.z', NOW)).toBeUndefined();
});
