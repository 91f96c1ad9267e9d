import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Loop } from './loop.js';

/** A pass that ends when the test says so. */
class Gate {
  started = 0;
  running = 0;
  mostAtOnce = 0;
  private ends: ((error?: Error) => void)[] = [];

  pass = async (): Promise<void> => {
    this.started += 1;
    this.running += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
    try {
      await new Promise<void>((resolve, reject) => {
        this.ends.push((error) => (error ? reject(error) : resolve()));
      });
    } finally {
      this.running -= 1;
    }
  };

  async end(error?: Error): Promise<void> {
    this.ends.shift()?.(error);
    await vi.advanceTimersByTimeAsync(0);
  }
}

const onError = vi.fn();

function loopOf(pass: () => Promise<unknown>, everyMs = 1_000): Loop {
  return new Loop({ name: 'test', everyMs, pass, onError });
}

beforeEach(() => {
  vi.useFakeTimers();
  onError.mockReset();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('a loop', () => {
  it('begins at once and goes on at its pace', async () => {
    const pass = vi.fn(async () => undefined);
    const loop = loopOf(pass).start();
    await vi.advanceTimersByTimeAsync(0);
    expect(pass).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(999);
    expect(pass).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(pass).toHaveBeenCalledTimes(2);
    await loop.stop();
  });

  it('never overlaps itself, however often it is woken', async () => {
    const gate = new Gate();
    const loop = loopOf(gate.pass, 10).start();
    await vi.advanceTimersByTimeAsync(0);
    for (let i = 0; i < 5; i++) {
      loop.wake();
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(gate.started).toBe(1);
    await gate.end();
    expect(gate.started).toBe(2);
    await gate.end();
    expect([gate.started, gate.mostAtOnce]).toEqual([2, 1]);
    await loop.stop();
  });

  it('runs once more at once when it was woken during a pass', async () => {
    const gate = new Gate();
    const loop = loopOf(gate.pass, 60_000).start();
    await vi.advanceTimersByTimeAsync(0);
    loop.wake();
    loop.wake();
    await gate.end();
    expect(gate.started).toBe(2);
    await gate.end();
    await vi.advanceTimersByTimeAsync(59_000);
    expect(gate.started).toBe(2);
    await loop.stop();
  });

  it('runs at once when it is woken between passes, and then keeps its pace from there', async () => {
    const pass = vi.fn(async () => undefined);
    const loop = loopOf(pass).start();
    await vi.advanceTimersByTimeAsync(500);
    loop.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(pass).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(999);
    expect(pass).toHaveBeenCalledTimes(2);
    await loop.stop();
  });

  it('waits as long as the pass asks for', async () => {
    const pass = vi.fn(async () => 5_000);
    const loop = loopOf(pass, 10).start();
    await vi.advanceTimersByTimeAsync(4_999);
    expect(pass).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(pass).toHaveBeenCalledTimes(2);
    await loop.stop();
  });

  it('can wait longer than one timer can', async () => {
    const pass = vi.fn(async () => Number.POSITIVE_INFINITY);
    const loop = loopOf(pass).start();
    await vi.advanceTimersByTimeAsync(1_000_000);
    expect(pass).toHaveBeenCalledTimes(1);
    await loop.stop();
  });
});

describe('a loop whose passes fail', () => {
  it('goes on with a growing pause of at most five seconds, and tells of each failure', async () => {
    const moments: number[] = [];
    const loop = loopOf(() => {
      moments.push(Date.now());
      throw new Error('no');
    }, 60_000).start();
    await vi.advanceTimersByTimeAsync(30_000);
    const pauses = moments.slice(1).map((moment, i) => moment - moments[i]!);
    expect(pauses.slice(0, 7)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000]);
    expect(new Set(pauses.slice(7))).toEqual(new Set([5_000]));
    expect(onError).toHaveBeenCalledTimes(moments.length);
    expect(onError).toHaveBeenCalledWith('test', expect.objectContaining({ message: 'no' }));
    await loop.stop();
  });

  it('is not hurried by those who wake it', async () => {
    const gate = new Gate();
    const loop = loopOf(gate.pass, 60_000).start();
    await vi.advanceTimersByTimeAsync(0);
    loop.wake();
    await gate.end(new Error('no'));
    loop.wake();
    await vi.advanceTimersByTimeAsync(99);
    expect(gate.started).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(gate.started).toBe(2);
    await gate.end();
    await loop.stop();
  });

  it('returns to its pace after a success', async () => {
    let failing = true;
    const pass = vi.fn(async () => {
      if (failing) throw new Error('no');
    });
    const loop = loopOf(pass, 1_000).start();
    await vi.advanceTimersByTimeAsync(300);
    expect(pass).toHaveBeenCalledTimes(3);
    failing = false;
    await vi.advanceTimersByTimeAsync(400);
    expect(pass).toHaveBeenCalledTimes(4);
    loop.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(pass).toHaveBeenCalledTimes(5);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pass).toHaveBeenCalledTimes(6);
    await loop.stop();
  });
});

describe('a loop that is stopped', () => {
  it('waits for the pass that runs and begins no other', async () => {
    const gate = new Gate();
    const loop = loopOf(gate.pass, 10).start();
    await vi.advanceTimersByTimeAsync(0);
    loop.wake();
    let stopped = false;
    const stopping = loop.stop().then(() => {
      stopped = true;
    });
    await vi.advanceTimersByTimeAsync(100);
    expect(stopped).toBe(false);
    await gate.end();
    await stopping;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gate.started).toBe(1);
  });

  it('cannot be woken, and was never running if it was not started', async () => {
    const pass = vi.fn(async () => undefined);
    const loop = loopOf(pass);
    loop.wake();
    await loop.stop();
    loop.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(pass).not.toHaveBeenCalled();
  });
});

describe('the timer of a loop', () => {
  it('does not hold the process open', async () => {
    vi.useRealTimers();
    const spy = vi.spyOn(globalThis, 'setTimeout');
    const loop = loopOf(async () => undefined).start();
    await vi.waitFor(() => expect(spy).toHaveBeenCalled());
    const timer = spy.mock.results.at(-1)!.value as NodeJS.Timeout;
    expect(timer.hasRef()).toBe(false);
    spy.mockRestore();
    await loop.stop();
  });
});
