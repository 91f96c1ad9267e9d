import { describe, expect, it } from 'vitest';
import { nearestName } from './nearest-name.js';

describe('the nearest name', () => {
  const names = ['databaseUrl', 'data', 'retry', 'slots', 'types', 'timeout', 'priority'];

  it.each([
    ['databseUrl', 'databaseUrl'],
    ['databaseURL', 'databaseUrl'],
    ['retries', 'retry'],
    ['slot', 'slots'],
    ['typ', 'types'],
    ['tiemout', 'timeout'],
    ['Priorty', 'priority'],
  ])('of %s is %s', (given, meant) => {
    expect(nearestName(given, names)).toBe(meant);
  });

  it.each(['', 'x', 'concurrency', 'zzzzz', 'a'.repeat(100_000)])('is none for another word', (given) => {
    expect(nearestName(given, names)).toBeUndefined();
  });

  it('is the one with the fewest mistakes', () => {
    expect(nearestName('orders-mial', ['orders-nail', 'orders-mail', 'orders-mall'])).toBe('orders-mail');
  });
});
