import { expect, it, onTestFinished, vi } from 'vitest';
import { PunctualError } from '../core/errors.js';
import type { ManyJobsAnswer, ManyJobsRequest } from '../core/wire.js';
import type { RequestOptions, Transport } from '../transport/transport.js';
import { changeJobs, type JobSelection, type ManyProgress } from './many-jobs.js';

/** A node that has these answers, one after the other; an error is thrown. */
function answering(...answers: readonly (Partial<ManyJobsAnswer> | Error)[]) {
  const asked: { path: string; body: ManyJobsRequest }[] = [];
  const sent: RequestOptions[] = [];
  const transport: Transport = {
    request: async <T>(_method: string, path: string, options: RequestOptions = {}) => {
      const answer = answers[asked.length]!;
      asked.push({ path, body: options.body as ManyJobsRequest });
      sent.push(options);
      if (answer instanceof Error) throw answer;
      return { matched: 0, changed: 0, dryRun: false, more: false, next: null, refused: [], ...answer } as T;
    },
  };
  return { transport, asked, sent };
}

it('goes on where each part ended, with the moments of the beginning, and adds the parts up', async () => {
  const { transport, asked } = answering(
    { matched: 3, changed: 2, more: true, next: 'b' },
    { matched: 0, changed: 0, more: true, next: 'a' },
    { matched: 1, changed: 1 },
  );
  const seen: unknown[] = [];
  const onProgress = (now: ManyProgress) => {
    seen.push(now);
    vi.setSystemTime(Date.now() + 60_000);
  };
  const filter = { queue: 'mail', since: new Date(0), until: '2h' };
  vi.setSystemTime('2026-07-01T12:00:00Z');
  onTestFinished(() => void vi.useRealTimers());
  const result = await changeJobs(transport, 'redrive', { filter }, { onProgress });
  expect(result).toEqual({ matched: 4, changed: 3, more: false, refused: [] });
  const sent = { queue: 'mail', since: '1970-01-01T00:00:00.000Z', until: '2026-07-01T10:00:00.000Z' };
  expect(asked).toEqual([
    { path: '/v1/jobs/redrive', body: { filter: sent } },
    { path: '/v1/jobs/redrive', body: { filter: sent, after: 'b' } },
    { path: '/v1/jobs/redrive', body: { filter: sent, after: 'a' } },
  ]);
  expect(seen).toEqual([
    { matched: 3, changed: 2, more: true },
    { matched: 3, changed: 2, more: true },
    { matched: 4, changed: 3, more: false },
  ]);
});

it('a dry run is one request, and says whether there are more', async () => {
  const { transport, asked } = answering({ matched: 100_000, more: true, next: 'x' });
  expect(await changeJobs(transport, 'delete', { all: true }, { dryRun: true })).toMatchObject({
    ...{ matched: 100_000, more: true },
  });
  expect(asked).toEqual([{ path: '/v1/jobs/delete', body: { all: true, dryRun: true } }]);
});

it.each<[string, object, ManyJobsRequest | null]>([
  ['a filter beside "all": false', { all: false, filter: { queue: 'mail' } }, { filter: { queue: 'mail' } }],
  ['a filter beside no ids', { ids: undefined, filter: { queue: 'mail' } }, { filter: { queue: 'mail' } }],
  ['ids and a filter', { ids: ['a'], filter: { queue: 'mail' } }, null],
  ['all and a filter', { all: true, filter: { queue: 'mail' } }, null],
  ['"all": false alone', { all: false }, null],
  ['nothing', {}, null],
  ['a filter without a value', { filter: { queue: undefined } }, { filter: {} }],
])('never takes %s for all jobs', async (_, selection, sent) => {
  const { transport, asked } = answering({});
  const work = changeJobs(transport, 'delete', selection as JobSelection);
  if (sent === null) {
    await expect(work).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect(asked).toEqual([]);
  } else {
    await work;
    expect(asked.map(({ body }) => body)).toStrictEqual([sent]);
  }
});

it('many ids are divided, and what was refused is collected', async () => {
  const refused = { id: 'x', code: 'JOB_ENDED', detail: 'It has ended.' };
  const { transport, asked } = answering({ changed: 1_000 }, { changed: 500, refused: [refused] });
  const ids = Array.from({ length: 1_501 }, (_, n) => String(n));
  expect(await changeJobs(transport, 'cancel', { ids })).toMatchObject({
    changed: 1_500,
    refused: [refused],
  });
  expect(asked.map(({ body }) => body.ids?.length)).toEqual([1_000, 501]);
});

it('work that has begun waits for the next leader; work that has not fails at once', async () => {
  const away = new PunctualError('NO_LEADER', 'The shard has no leader.');
  const begun = answering({ matched: 1, changed: 1, next: 'a' }, away, { matched: 1, changed: 1 });
  expect(await changeJobs(begun.transport, 'hold', { all: true })).toMatchObject({ changed: 2 });
  await expect(changeJobs(answering(away).transport, 'hold', { all: true })).rejects.toBe(away);
});

it('a part by ids whose effect is unknown is not repeated: the jobs it changed would be refused', async () => {
  const ids = Array.from({ length: 1_500 }, (_, n) => String(n));
  const lost = new PunctualError('NO_LEADER', 'The leader was lost before it answered.');
  const unknown = answering({ matched: 1_000, changed: 1_000 }, lost);
  await expect(changeJobs(unknown.transport, 'cancel', { ids })).rejects.toBe(lost);
  expect(unknown.sent.map(({ retry }) => retry)).toEqual([false, false]);
  const busy = new PunctualError('TOO_BUSY', 'Try again.');
  const refused = answering({ matched: 1_000, changed: 1_000 }, busy, { matched: 500, changed: 500 });
  expect(await changeJobs(refused.transport, 'cancel', { ids })).toMatchObject({ changed: 1_500 });
  const counted = answering({});
  await changeJobs(counted.transport, 'cancel', { ids: ['a'] }, { dryRun: true });
  expect(counted.sent[0]).toMatchObject({ retry: true });
});

it('ends between two parts when its signal aborts, and in the middle of a count', async () => {
  const { transport, asked, sent } = answering({ matched: 1, changed: 1, next: 'a' });
  const stop = new AbortController();
  const work = changeJobs(
    transport,
    'cancel',
    { all: true },
    {
      signal: stop.signal,
      onProgress: () => stop.abort(),
    },
  );
  await expect(work).rejects.toMatchObject({ name: 'AbortError' });
  expect(asked).toHaveLength(1);
  expect(sent[0]!.signal).toBeUndefined();
  const counting = answering({});
  const { signal } = new AbortController();
  await changeJobs(counting.transport, 'cancel', { all: true }, { dryRun: true, signal });
  expect(counting.sent[0]!.signal).toBe(signal);
});
