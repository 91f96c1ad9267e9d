import pg from 'pg';
import { onTestFinished, vi } from 'vitest';

/**
 * How long the statements of this process take until the test ends, in milliseconds, by their names. Others use the machine
 * meanwhile, so it is the median of a name that tells anything.
 */
export function statementTimes(): ReadonlyMap<string, readonly number[]> {
  const times = new Map<string, number[]>();
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const [what] = args as [string | { name?: string; text?: string }];
    const name = typeof what === 'string' ? what.slice(0, 40) : (what.name ?? what.text ?? '?').slice(0, 40);
    const begin = performance.now();
    const note = () => {
      const known = times.get(name);
      if (known) known.push(performance.now() - begin);
      else times.set(name, [performance.now() - begin]);
    };
    const answer = query.apply(this, args);
    if (answer instanceof Promise) answer.then(note, note);
    return answer;
  } as never);
  onTestFinished(() => spy.mockRestore());
  return times;
}

/** The names of statements whose median is above a limit, each with it. */
export function slowStatements(times: ReadonlyMap<string, readonly number[]>, limitMs: number): string[] {
  return [...times].flatMap(([name, all]) => {
    const median = [...all].sort((a, b) => a - b)[Math.floor((all.length - 1) / 2)]!;
    return median <= limitMs ? [] : [`${name}: ${Math.round(median)} ms (${all.length} times)`];
  });
}
