import { expect, it } from 'vitest';
import { type PlacedRow, toPlacedRow } from './job-places.js';

it('a job of another tenant never becomes something to show, and the error does not say whose it is', () => {
  const row = { id: '1', tenant: 'secret-tenant', earlier_attempts: null } as unknown as PlacedRow;
  expect(toPlacedRow('secret-tenant', row)).toBe(row);
  expect(() => toPlacedRow('acme', row)).toThrow('a row of another tenant was read for acme');
});
