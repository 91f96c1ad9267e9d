import { expect, it } from 'vitest';
import { readerRoleOf } from './reader-role.js';

it('every owner of tables has a reader of its own, whose name Postgres does not cut off', () => {
  expect(readerRoleOf('shop')).toBe('punctual_reader_shop');
  const long = 'o'.repeat(62);
  const names = [`${long}a`, `${long}b`, 'ö'.repeat(30), 'ö'.repeat(31)].map(readerRoleOf);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
});
