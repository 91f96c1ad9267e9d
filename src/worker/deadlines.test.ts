import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TimerClock } from '../core/clock.js';
import { Deadlines, Timed } from './deadlines.js';

/** Follows the faked time of the test. */
const clock = new TimerClock(() => Date.now());

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

class Entry extends Timed {
  constructor(
    override dueAt: number,
    public expire: () => void,
  ) {
    super();
  }
}

describe('deadlines', () => {
  function watch() {
    const deadlines = new Deadlines(clock);
    const expired: string[] = [];
    const add = (name: string, ms: number): Timed => {
      const entry = new Entry(clock.now() + ms, () => void expired.push(name));
      deadlines.add(entry);
      return entry;
    };
    return { deadlines, expired, add };
  }

  it('pass in order, none early, however they were added', () => {
    const { expired, add } = watch();
    add('late', 300);
    add('early', 100);
    add('middle', 200);
    vi.advanceTimersByTime(99);
    expect(expired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(expired).toEqual(['early']);
    vi.advanceTimersByTime(200);
    expect(expired).toEqual(['early', 'middle', 'late']);
  });

  it('of what has ended in time do not pass', () => {
    const { deadlines, expired, add } = watch();
    const ended = add('ended', 100);
    add('open', 100);
    deadlines.remove(ended);
    vi.advanceTimersByTime(100);
    expect(expired).toEqual(['open']);
  });

  it('of any of many can be taken back', () => {
    const { deadlines, expired, add } = watch();
    const entries = ['a', 'b', 'c', 'd'].map((name) => add(name, 100));
    for (const index of [3, 1, 1, 0]) deadlines.remove(entries[index]!);
    deadlines.add(entries[1]!);
    vi.advanceTimersByTime(100);
    expect(expired.sort()).toEqual(['b', 'c']);
  });

  it('share one timer, and need none when nothing runs', () => {
    const { deadlines, add } = watch();
    for (let i = 0; i < 1_000; i++) add(String(i), 1_000 + i);
    expect(vi.getTimerCount()).toBe(1);
    deadlines.clear();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('may lie beyond the reach of one timer', () => {
    const { expired, add } = watch();
    add('far', 2 ** 31 + 1_000);
    vi.advanceTimersByTime(2 ** 31);
    expect(expired).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(expired).toEqual(['far']);
  });

  it('may be set anew by what passes', () => {
    const { deadlines, expired, add } = watch();
    const twice = new Entry(clock.now() + 10, () => {
      twice.dueAt = clock.now() + 10;
      twice.expire = () => void expired.push('second');
      deadlines.add(twice);
    });
    deadlines.add(twice);
    add('other', 15);
    vi.advanceTimersByTime(20);
    expect(expired).toEqual(['other', 'second']);
  });
});
