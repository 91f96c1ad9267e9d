import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Middleware } from '../core/task.js';
import { testContext } from '../sdk/test-context.js';
import { runThrough } from './middleware.js';

function run(middleware: Middleware[], work: () => unknown, context = testContext()) {
  const mistakes: string[] = [];
  const result = runThrough(middleware, context, work, (message) => mistakes.push(message));
  return { result, mistakes };
}

const fail = (message: string) => () => {
  throw new Error(message);
};

describe('middleware', () => {
  it('wraps the handler in the order of the list, and sees its context and payload', async () => {
    const steps: string[] = [];
    const layer =
      (name: string): Middleware =>
      async (context, next) => {
        steps.push(`${name} ${context.jobId} ${JSON.stringify(context.payload)}`);
        const result = await next();
        steps.push(`${name} after ${result}`);
        return result;
      };
    const { result } = run(
      [layer('outer'), layer('inner')],
      () => 42,
      testContext({ jobId: 'j', payload: 1 }),
    );
    expect(await result).toBe(42);
    expect(steps).toEqual(['outer j 1', 'inner j 1', 'inner after 42', 'outer after 42']);
  });

  it('keeps the result when it returns nothing, and replaces it when it returns something', async () => {
    const silent: Middleware = async (_, next) => {
      await next();
    };
    expect(await run([silent, silent], () => 'kept').result).toBe('kept');
    expect(await run([async (_, next) => [await next()]], () => 1).result).toEqual([1]);
    expect(await run([(_, next) => next()], async () => 'plain function').result).toBe('plain function');
  });

  it('does not turn an error into success by catching it, unless it returns a result', async () => {
    const caught: unknown[] = [];
    const reporter: Middleware = async (_, next) => {
      try {
        await next();
      } catch (error) {
        caught.push(error);
      }
    };
    await expect(run([reporter], fail('boom')).result).rejects.toThrow('boom');
    expect(caught).toHaveLength(1);
    const fallback: Middleware = (_, next) => next().catch(() => 'instead');
    expect(await run([fallback], fail('boom')).result).toBe('instead');
    await expect(
      run([(_, next) => next().catch(() => Promise.reject(new Error('other')))], fail('boom')).result,
    ).rejects.toThrow('other');
  });

  it('may do without the handler by returning a result, but not by forgetting next()', async () => {
    let calls = 0;
    const work = () => {
      calls += 1;
    };
    expect(await run([() => 'cached'], work).result).toBe('cached');
    await expect(run([() => undefined], work).result).rejects.toThrow(/neither called next\(\) nor returned/);
    await expect(run([fail('refused')], work).result).rejects.toThrow('refused');
    expect(calls).toBe(0);
  });

  it.each<[string, Middleware]>([
    ['nothing', (_, next) => void next()],
    ['a value', (_, next) => [next()].length],
  ])(
    'that does not wait for next() and returns %s ends after the handler, and with its error',
    async (_, forgetful) => {
      let ended = false;
      const slow = async () => {
        await sleep(5);
        ended = true;
        return 'late';
      };
      const good = run([forgetful], slow);
      await good.result;
      expect(ended).toBe(true);
      expect(good.mistakes).toEqual([expect.stringContaining('did not wait for next()')]);
      for (const work of [fail('at once'), () => sleep(5).then(fail('later'))]) {
        const bad = run([forgetful], work);
        await expect(bad.result).rejects.toThrow(/at once|later/);
        expect(bad.mistakes).toHaveLength(1);
      }
    },
  );

  it('that fails while the handler runs ends after the handler, with its own error', async () => {
    let ended = false;
    const impatient: Middleware = (_, next) => Promise.race([next(), Promise.reject(new Error('too slow'))]);
    const { result } = run([impatient], async () => {
      await sleep(5);
      ended = true;
    });
    await expect(result).rejects.toThrow('too slow');
    expect(ended).toBe(true);
  });

  it('that calls next() twice fails, and the handler runs once', async () => {
    let calls = 0;
    const again: Middleware = async (_, next) => {
      await next();
      return next();
    };
    await expect(run([again], () => (calls += 1)).result).rejects.toThrow(/again called next\(\) twice/);
    const unawaited: Middleware = async (_, next) => {
      void next();
      void next();
    };
    await expect(run([unawaited], () => (calls += 1)).result).rejects.toThrow(/called next\(\) twice/);
    expect(calls).toBe(2);
  });

  it('cannot start the handler after it has ended, nor after the attempt was told to stop', async () => {
    let late: (() => unknown) | undefined;
    const keeper: Middleware = (_, next) => {
      late = next;
      return 'done';
    };
    let calls = 0;
    expect(await run([keeper], () => (calls += 1)).result).toBe('done');
    expect(() => late!()).toThrow(/after it had ended/);
    const context = testContext();
    const preparing: Middleware = async (_, next) => {
      context.abort(new Error('cancelled'));
      return next();
    };
    await expect(run([preparing], () => (calls += 1), context).result).rejects.toThrow('cancelled');
    expect(calls).toBe(0);
  });
});
