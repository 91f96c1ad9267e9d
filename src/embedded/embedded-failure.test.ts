import { expect, it } from 'vitest';
import { embeddedFailure, explain, isDiskFull } from './embedded-failure.js';

it('a full disk is known by the code of a call, however deep, and by what the server said', () => {
  const call = Object.assign(new Error('ENOSPC: write'), { code: 'ENOSPC' });
  expect(isDiskFull(explain(call, 'The state could not be written'))).toBe(true);
  expect(isDiskFull(embeddedFailure('It said: PANIC: could not write: No space left on device'))).toBe(true);
  expect(isDiskFull(embeddedFailure('It said: FATAL: something else'))).toBe(false);
  expect(isDiskFull(Object.assign(new Error('EACCES'), { code: 'EACCES' }))).toBe(false);
});
