import { describe, expect, it } from 'vitest';
import { resolveWorkerOptions, type WorkerOptions } from './worker-options.js';

describe('the options of a worker', () => {
  it('take a rate as text or in fields, and all queues by a star', () => {
    expect(resolveWorkerOptions({ rate: '100/1s', queues: ['*'], shared: true })).toMatchObject({
      rate: { limit: 100, per: '1s' },
      queues: ['*'],
      shared: true,
    });
    const rate = { limit: 5, per: '1m', burst: 2 } as const;
    expect(resolveWorkerOptions({ rate })).toMatchObject({ rate, shared: false });
    expect(resolveWorkerOptions({}).rate).toBeNull();
  });

  it.each([
    [{ rate: '100' }, 'rate: '],
    [{ rate: { limit: 0, per: '1s' } }, 'rate: '],
    [{ queues: ['a*'] }, 'queues: '],
    [{ queues: [] }, 'queues: '],
    [{ slots: 0 }, 'slots: '],
  ])('%j are refused before anything is sent', (options, message) => {
    expect(() => resolveWorkerOptions(options as WorkerOptions)).toThrow(
      expect.objectContaining({ code: 'CONFIGURATION', message: expect.stringContaining(message) }),
    );
  });
});
