import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { withAnyOf } from './any-of.js';

describe('a signal made of several', () => {
  it('aborts with the first of them, and with the same reason', async () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const reason = await withAnyOf([first.signal, second.signal], async (signal) => {
      second.abort('enough');
      first.abort('too late');
      return signal.reason;
    });
    expect(reason).toBe('enough');
  });

  it('has aborted when one of them has', async () => {
    const gone = AbortSignal.abort('gone');
    expect(await withAnyOf([new AbortController().signal, gone], async ({ reason }) => reason)).toBe('gone');
  });

  it('leaves nothing with them when the work is done, well or not', async () => {
    const { signal } = new AbortController();
    await withAnyOf([signal], async () => undefined);
    await expect(withAnyOf([signal], () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
