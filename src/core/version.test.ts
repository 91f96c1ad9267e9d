import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compareVersions, VERSION } from './version.js';

describe('the version', () => {
  it('is that of the package', () => {
    const path = new URL('../../package.json', import.meta.url);
    expect(VERSION).toBe(JSON.parse(readFileSync(path, 'utf8')).version);
  });

  it.each([
    ['1.2.3', '1.2.3', 0],
    ['1.2.3', '1.2.4', -1],
    ['1.10.0', '1.9.9', 1],
    ['2.0.0', '1.99.99', 1],
    ['0.1.0', '0.1', 0],
    ['0.1', '0.1.1', -1],
  ])('%s beside %s: %d', (a, b, order) => {
    expect(Math.sign(compareVersions(a, b))).toBe(order);
    expect(Math.sign(compareVersions(b, a)) + order).toBe(0);
  });
});
