import { describe, expect, it } from 'vitest';
import { agrees, checkNode } from './install.mjs';

describe('installing', () => {
  const machine = { platform: 'linux', arch: 'x64' };
  const lock = {
    packages: {
      '': { name: 'punctual' },
      'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
      'node_modules/for-mac': { version: '1.0.0', optional: true, os: ['darwin'] },
      'node_modules/for-linux': { version: '1.0.0', optional: true, os: ['linux'], cpu: ['x64'] },
      'node_modules/for-musl': { version: '1.0.0', optional: true, os: ['linux'], libc: ['musl'] },
    },
  };
  const complete = {
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/for-linux': { version: '1.0.0' },
  };

  it('is not needed when npm has installed what the lock says for this machine', () => {
    expect(agrees(lock, { packages: complete }, machine)).toBe(true);
  });

  it('is needed when a package has another version, is missing, or was left out as optional', () => {
    const { 'node_modules/a': _, ...withoutA } = complete;
    const { 'node_modules/for-linux': __, ...withoutOptional } = complete;
    const changed = { ...complete, 'node_modules/a': { version: '1.0.0', integrity: 'sha512-b' } };
    for (const packages of [withoutA, withoutOptional, changed]) {
      expect(agrees(lock, { packages }, machine)).toBe(false);
    }
  });

  it('refuses a Node that is too old, and says which one is needed', () => {
    for (const version of ['18.20.4', '20.18.3']) expect(() => checkNode(version)).toThrow('20.19 or newer');
    for (const version of ['20.19.0', '22.0.0', '24.1.0']) expect(() => checkNode(version)).not.toThrow();
  });
});
