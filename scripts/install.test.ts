import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { temporaryFolder } from '../test/temporary-folder.js';
import { agrees, checkNode, installByLock } from './install.mjs';

describe('installing', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  const machine = { platform: 'linux', arch: 'x64' };
  const lock = {
    packages: {
      '': { name: 'punctual' },
      'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
      'test/own/node_modules/b': { version: '2.0.0' },
      'node_modules/for-mac': { version: '1.0.0', optional: true, os: ['darwin'] },
      'node_modules/for-linux': { version: '1.0.0', optional: true, os: ['linux'], cpu: ['x64'] },
      'node_modules/for-musl': { version: '1.0.0', optional: true, os: ['linux'], libc: ['musl'] },
    },
  };
  const complete = {
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'test/own/node_modules/b': { version: '2.0.0' },
    'node_modules/for-linux': { version: '1.0.0' },
  };

  it('is not needed when npm has installed what the lock says for this machine', () => {
    expect(agrees(lock, { packages: complete }, machine)).toBe(true);
  });

  it('is needed when a package has another version, is missing, or was left out as optional', () => {
    const { 'node_modules/a': _, ...withoutA } = complete;
    const { 'node_modules/for-linux': __, ...withoutOptional } = complete;
    const { 'test/own/node_modules/b': ___, ...withoutNested } = complete;
    const changed = { ...complete, 'node_modules/a': { version: '1.0.0', integrity: 'sha512-b' } };
    for (const packages of [withoutA, withoutOptional, withoutNested, changed]) {
      expect(agrees(lock, { packages }, machine)).toBe(false);
    }
  });

  it('goes on with what fits this machine when the lock lacks a package, also below a silent npm', async () => {
    vi.stubEnv('npm_config_loglevel', 'silent');
    const folder = await temporaryFolder();
    const write = (path: string, content: object) => writeFile(join(folder, path), JSON.stringify(content));
    await mkdir(join(folder, 'other'));
    await write('other/package.json', { name: 'other', version: '1.0.0' });
    await write('package.json', { name: 'some', dependencies: { other: 'file:other' } });
    await write('package-lock.json', {
      name: 'some',
      lockfileVersion: 3,
      packages: { '': { name: 'some' } },
    });
    await installByLock(folder);
    expect(await readdir(join(folder, 'node_modules'))).toContain('other');
    await rm(folder, { recursive: true });
  }, 30_000);

  it('refuses a Node that is too old, and says which one is needed', () => {
    for (const version of ['18.20.4', '20.18.3']) expect(() => checkNode(version)).toThrow('20.19 or newer');
    for (const version of ['20.19.0', '22.0.0', '24.1.0']) expect(() => checkNode(version)).not.toThrow();
  });
});
