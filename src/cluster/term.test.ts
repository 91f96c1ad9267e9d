import { describe, expect, it, vi } from 'vitest';
import { Term } from './term.js';

const soon = () => performance.now() + 60_000;

describe('a term', () => {
  it('is trusted until the moment it was promised, and longer after a renewal', () => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
    const term = new Term(0, 7, 'node-a', 1_500);
    expect(term.trusted).toBe(true);
    clock.mockReturnValue(1_499.9);
    expect(term.trusted).toBe(true);
    clock.mockReturnValue(1_500);
    expect(term.trusted).toBe(false);
    expect(term.over).toBe(false);
    term.trustUntil(2_000);
    expect(term.trusted).toBe(true);
    clock.mockRestore();
  });

  it('ends once, for the first reason, and is never trusted again', () => {
    const term = new Term(0, 7, 'node-a', soon());
    const listener = vi.fn();
    term.onOver(listener);
    expect(term.reason).toBeNull();
    term.end('lost');
    term.end('later');
    term.trustUntil(soon());
    expect([term.over, term.trusted, term.reason]).toEqual([true, false, 'lost']);
    expect(listener.mock.calls).toEqual([['lost']]);
  });

  it('is over already for those who hear of it first in a listener', () => {
    const term = new Term(0, 7, 'node-a', soon());
    const seen: boolean[] = [];
    term.onOver(() => seen.push(term.over));
    term.onOver(() => {
      term.end('again');
      seen.push(term.over);
    });
    term.end('lost');
    expect(seen).toEqual([true, true]);
  });

  it('calls back at once when it has ended', () => {
    const term = new Term(0, 7, 'node-a', soon());
    term.end('lost');
    const listener = vi.fn();
    term.onOver(listener);
    expect(listener).toHaveBeenCalledExactlyOnceWith('lost');
  });
});
