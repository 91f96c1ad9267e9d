import { expect, it } from 'vitest';
import { PunctualError } from '../core/errors.js';
import { SILENT_LOG } from '../core/log.js';
import type { Queryable } from '../store/database.js';
import { CancelRequests } from './cancel-requests.js';
import { noLeader } from './leader-state.js';

/** A leader with that many requests, about the jobs `1`, `2` and so on; `cancel` is told the number of the job. */
function leaderWith(count: number, cancel: (job: number) => void) {
  const asked: number[] = [];
  const left = new Set(Array.from({ length: count }, (_, i) => i + 1));
  const answer = (rows: unknown[]) => Promise.resolve({ rows }) as never;
  const reads = {
    query: ({ values }: { values: unknown[] }) => {
      const [after, limit] = values as [number, number];
      const found = [...left].filter((id) => id > after).slice(0, limit);
      return answer(found.map((id) => ({ id, tenant: 't', job: String(id), requestedBy: 'x' })));
    },
  } as unknown as Queryable;
  const hot = {
    query: ({ values }: { values: unknown[] }) => {
      const ids = values.at(-1) as number[];
      for (const id of ids) left.delete(id);
      return answer(ids.map((id) => ({ id })));
    },
  } as unknown as Queryable;
  const leader = {
    ...{ reads, hot, log: SILENT_LOG, isOver: false, term: { shard: 0, epoch: 1, holder: 'n' } },
    write: <T>(work: () => Promise<T>) => work(),
  };
  const requests = new CancelRequests(leader, {
    cancel: async (_, job) => {
      asked.push(Number(job));
      cancel(Number(job));
    },
  });
  return { leader, requests, asked, left };
}

it('a request that fails keeps no other from being carried out and forgotten', async () => {
  const { requests, asked, left } = leaderWith(25, (job) => {
    if (job === 3) throw new Error('broken');
    if (job === 4) throw new PunctualError('JOB_ENDED', 'ended');
  });
  await expect(requests.runOnce()).rejects.toThrow('broken');
  expect(asked).toHaveLength(25);
  expect([...left]).toEqual([3]);
  await expect(requests.runOnce()).rejects.toThrow('broken');
  expect(asked.slice(25)).toEqual([3]);
});

it('a pass ends with the term, and says nothing about each request', async () => {
  const { leader, requests, asked, left } = leaderWith(25, () => {
    leader.isOver = true;
    throw noLeader();
  });
  await requests.runOnce();
  expect(asked).toHaveLength(10);
  expect(left.size).toBe(25);
});
