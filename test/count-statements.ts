import pg from 'pg';
import { onTestFinished, vi } from 'vitest';

/** Counts what this process sends to its databases until the test ends, by the names of the statements. */
export function countStatements(): Map<string, number> {
  const counts = new Map<string, number>();
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const [what] = args as [string | { name?: string; text?: string }];
    const name = typeof what === 'string' ? what.slice(0, 40) : (what.name ?? what.text ?? '?').slice(0, 40);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return query.apply(this, args);
  } as never);
  onTestFinished(() => spy.mockRestore());
  return counts;
}
