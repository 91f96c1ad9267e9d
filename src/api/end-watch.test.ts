import { expect, it, onTestFinished, vi } from 'vitest';
import { Happening } from '../../test/happening.js';
import { SILENT_LOG } from '../core/log.js';
import { News } from '../core/news.js';
import { type EndSource, EndWatch } from './end-watch.js';

const NEVER = new AbortController().signal;
const LONG_MS = 60_000;
const job = (id: string) => ({ tenant: 'acme', id });

/** A leader as those who wait see it: what it was told, and a way to end jobs and itself. */
class Leader implements EndSource {
  readonly changes = new Happening<{ add: readonly string[]; remove: readonly string[] }>();
  readonly controller = new AbortController();
  readonly over = this.controller.signal;
  end: (ids: readonly string[]) => void = () => undefined;

  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    this.over.throwIfAborted();
    this.changes.happen({ add, remove });
  }

  close(): void {
    this.controller.abort();
  }
}

function watching() {
  const leaders: Leader[] = [];
  const opened = new Happening<Leader>();
  const ended = new Set<string>();
  const leaderNews = new News();
  const watch = new EndWatch({
    open: async (onEnded) => {
      const leader = leaders[0];
      if (!leader || leader.over.aborted) return null;
      leader.end = onEnded;
      opened.happen(leader);
      return leader;
    },
    leaderNews,
    onLeaderLost: () => undefined,
    findEnded: async (jobs) => jobs.map(({ id }) => id).filter((id) => ended.has(id)),
    log: SILENT_LOG,
  });
  onTestFinished(() => watch.close());
  const lead = () => {
    leaders[0] = new Leader();
    leaderNews.tell();
    return leaders[0];
  };
  return { watch, lead, opened, ended };
}

it('ten thousand who wait share one line to the leader, and are told of the ends of their own jobs', async () => {
  const { watch, lead, opened } = watching();
  const leader = lead();
  const ids = Array.from({ length: 10_000 }, (_, n) => `job-${n}`);
  const waits = ids.map((id) => watch.wait(job(id), LONG_MS, NEVER));
  await vi.waitFor(() => expect(leader.changes.all.flatMap(({ add }) => add)).toHaveLength(10_000));
  expect(Math.max(...leader.changes.all.map(({ add }) => add.length))).toBeLessThanOrEqual(1_000);
  leader.end(ids);
  expect(await Promise.all(waits)).toEqual(ids.map(() => true));
  expect(opened.all).toHaveLength(1);
});

it('a job that ended before the leader was told of it is found in the table, and not watched any longer', async () => {
  const { watch, lead, ended } = watching();
  const leader = lead();
  ended.add('a');
  expect(await watch.wait(job('a'), LONG_MS, NEVER)).toBe(true);
  await vi.waitFor(() => expect(leader.changes.all.at(-1)).toEqual({ add: [], remove: ['a'] }));
});

it('who waits goes on to the next leader, also for a job that ended in between', async () => {
  const { watch, lead, opened, ended } = watching();
  const first = lead();
  const waits = ['a', 'b'].map((id) => watch.wait(job(id), LONG_MS, NEVER));
  await vi.waitFor(() => expect(first.changes.all.flatMap(({ add }) => add)).toEqual(['a', 'b']));
  ended.add('a');
  first.close();
  const second = lead();
  expect(await waits[0]).toBe(true);
  second.end(['b']);
  expect(await waits[1]).toBe(true);
  expect(opened.all).toHaveLength(2);
});

it('whose time is up, and who has gone, is watched for no longer', async () => {
  const { watch, lead } = watching();
  const leader = lead();
  const gone = new AbortController();
  const other = watch.wait(job('c'), LONG_MS, NEVER);
  const waits = [watch.wait(job('a'), 30, NEVER), watch.wait(job('b'), LONG_MS, gone.signal)];
  await vi.waitFor(() => expect(leader.changes.all.flatMap(({ add }) => add)).toHaveLength(3));
  gone.abort();
  expect(await Promise.all(waits)).toEqual([false, false]);
  await vi.waitFor(() =>
    expect(leader.changes.all.flatMap(({ remove }) => remove).sort()).toEqual(['a', 'b']),
  );
  leader.end(['c']);
  expect(await other).toBe(true);
});

it('who waits is told after five seconds that there is no leader', async () => {
  const { watch } = watching();
  const wait = watch.wait(job('a'), LONG_MS, NEVER);
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 5_100);
  onTestFinished(() => clock.mockRestore());
  await expect(wait).rejects.toMatchObject({ code: 'NO_LEADER' });
});
