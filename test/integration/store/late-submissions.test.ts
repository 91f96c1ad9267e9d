import { expect, it } from 'vitest';
import { submitJobs, VISIBLE_WITHIN_MS } from '../../../src/store/submit-jobs.js';
import { TestShard } from './test-shard.js';

it.each([
  ['live jobs', {}],
  ['jobs for later', { admitAt: Date.now() + 60_000 }],
])(
  '%s whose ids are too old for the look-back are refused by the database, whatever held them up',
  async (_, place) => {
    const shard = await TestShard.forTest();
    const jobs = [await shard.newJob({}, place), await shard.newJob({}, place)];
    // As if the process had been stopped between making the ids and sending them.
    const made = { ...shard.made(), at: Date.now() - VISIBLE_WITHIN_MS };
    const late = submitJobs(shard.hot, jobs, made, Date.now());
    await expect(late).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE', retryAfter: 1 });
    for (const table of ['jobs', 'later', 'tallies']) expect(await shard.count(table)).toBe(0);
    expect(await shard.store(jobs)).toEqual(jobs.map(({ row }) => row.id));
  },
);
