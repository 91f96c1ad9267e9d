import { describe, expect, it } from 'vitest';
import { checkOptions, type OptionNames } from './known-options.js';

const KNOWN: OptionNames<{ slots?: number; queues?: string }> = { slots: true, queues: true };

describe('options', () => {
  it('that are known are let through, and so is nothing at all', () => {
    expect(() => checkOptions('worker()', { slots: 2, queues: undefined }, KNOWN)).not.toThrow();
    expect(() => checkOptions('worker()', undefined, KNOWN)).not.toThrow();
    expect(() => checkOptions('worker()', Object.create(null), KNOWN)).not.toThrow();
  });

  it('that are unknown are refused, with the name that was probably meant', () => {
    expect(() => checkOptions('worker()', { slot: 2 }, KNOWN)).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: '/slot: worker() has no such option. Did you mean slots?',
        errors: [{ pointer: '/slot', detail: 'worker() has no such option. Did you mean slots?' }],
      }),
    );
  });

  it('that are like no other are refused with a list', () => {
    expect(() => checkOptions('worker()', { prefetch: 2 }, KNOWN)).toThrow('It has slots, queues.');
  });

  it.each(['toString', 'constructor', '__proto__'])(
    'are not taken for known if they are called %s',
    (name) => {
      const options = JSON.parse(`{"${name}": 1}`) as object;
      expect(() => checkOptions('worker()', options, KNOWN)).toThrow(`/${name}: `);
    },
  );

  it('are not what a prototype has', () => {
    class Options {
      slots = 2;
    }
    Object.defineProperty(Options.prototype, 'everywhere', { value: 1, enumerable: true });
    expect(() => checkOptions('worker()', new Options(), KNOWN)).not.toThrow();
  });
});
