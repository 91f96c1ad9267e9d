import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { serverArguments, sharedBuffersMb } from './server-settings.js';

describe('the settings of the server', () => {
  it('ask for a modest share of any memory', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        const share = sharedBuffersMb(bytes);
        return Number.isInteger(share) && share >= 32 && share <= 256;
      }),
    );
    expect(sharedBuffersMb(1024 ** 3)).toBe(128);
  });

  it('are durable and local unless told otherwise', () => {
    const args = serverArguments('/data', 25_432, {});
    expect(args.slice(0, 2)).toEqual(['-D', '/data']);
    for (const setting of ['port=25432', 'fsync=on', 'synchronous_commit=on', 'listen_addresses=127.0.0.1']) {
      expect(args).toContain(setting);
    }
    expect(serverArguments('/data', 25_432, { fsync: 'off' })).not.toContain('fsync=on');
  });
});
