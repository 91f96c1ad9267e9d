import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bisect } from '../../../src/store/bisect.js';
import { readWork, saveProgress } from '../../../src/store/claims.js';
import { endWaitingJobs } from '../../../src/store/end-waiting-jobs.js';
import { addLogLines, readLogLines } from '../../../src/store/job-logs.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { listJobs } from '../../../src/store/list-jobs.js';
import {
  admitJobs,
  changeLater,
  changeLive,
  parseLater,
  postponeJobs,
  readSubmissions,
  redriveJobs,
  unchanged,
} from '../../../src/store/place-jobs.js';
import { findKey, readJob } from '../../../src/store/read-job.js';
import { TENANT, TestShard } from './test-shard.js';

/** JSON that `jsonb` or `text` would refuse or change; a tenant must not be able to spoil a batch with it. */
const ODD_JSON: Readonly<Record<string, string>> = {
  'a NUL character': String.raw`{"a":"x\u0000y"}`,
  'a NUL character in a name': String.raw`{"\u0000":1}`,
  'half a surrogate pair': String.raw`["\ud800","\udc00\ud800"]`,
  'numbers beyond every type': `[${'9'.repeat(400)},-0,1e400,0.1e-400]`,
  'nesting up to the limit': `${'['.repeat(64)}${']'.repeat(64)}`,
  'a name twice': '{"a":1,"a":2}',
  'a backslash before what looks like an escape': String.raw`"\\u0000 \\\ud800"`,
  'the empty text and null': '["",null]',
};

const cases = Object.entries(ODD_JSON);
let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

const read = async (id: string) => (await readJob(shard.hot, TENANT, id))!;

/** A job whose payload is exactly this text, which may be JSON that no JavaScript value stands for. */
async function submitText(payload: string, held = false): Promise<string> {
  const job = await shard.newJob({}, { held });
  await shard.store([{ ...job, row: { ...job.row, payload } }]);
  return job.row.id;
}

describe.each(cases)('%s', (_, json) => {
  it('survives as a payload in every place', async () => {
    const id = await submitText(json);
    expect((await read(id)).payload).toBe(json);
    await postponeJobs(shard.hot, term, [{ ...unchanged(id), admitAt: Date.now(), held: false }]);
    expect(await read(id)).toMatchObject({ place: 'later', payload: json });
    await admitJobs(shard.hot, term, [unchanged(id)]);
    expect((await shard.claim(term, [id]))[0]!.payload).toBe(json);
    expect((await readWork(shard.hot, [id])).get(id)!.payload).toBe(json);
    await shard.fail(term, id);
    expect(await read(id)).toMatchObject({ place: 'history', payload: json });
    await redriveJobs(shard.hot, term, TENANT, [id], Date.now());
    expect(await read(id)).toMatchObject({ place: 'live', payload: json });
  });

  it('survives as a changed payload, admitted, held or live', async () => {
    const id = await shard.submit({}, { held: true });
    await changeLater(shard.hot, term, [{ ...unchanged(id), payload: json, admitAt: 0, held: true }]);
    expect((await read(id)).payload).toBe(json);
    const other = await shard.submit();
    await changeLive(shard.hot, term, { ...unchanged(other), payload: json });
    expect((await read(other)).payload).toBe(json);
    const third = await shard.submit({}, { held: true });
    await admitJobs(shard.hot, term, [{ ...unchanged(third), payload: json }]);
    expect(await read(third)).toMatchObject({ place: 'live', payload: json });
  });

  it('survives as result, error, progress and attempt', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    const error = `{"message":"odd","detail":${json}}`;
    await shard.retry(term, id, 1, { attempt: `{"fence":1,"error":${error}}` });
    expect((await read(id)).earlier_attempts![0]!.error).toEqual(JSON.parse(error));
    await shard.claim(term, [id], 2);
    await saveProgress(shard.hot, term, [{ id, fence: 2, progress: json }]);
    expect((await read(id)).progress).toBe(json);
    const failed = { fence: 2, state: 'failed', outcome: 'failed' } as const;
    // Beside another end, because what is the same in all ends goes in another way.
    const other = await shard.submit();
    await shard.claim(term, [other]);
    await shard.finish(term, [{ id, ...failed, result: json, error, progress: json }, { id: other }]);
    expect(await read(id)).toMatchObject({ result: json, error, progress: json });
    const held = await shard.submit({}, { held: true });
    await endWaitingJobs(shard.hot, term, 'later', [{ id: held, state: 'failed', error }], Date.now());
    expect((await read(held)).error).toBe(error);
  });

  it('survives in lines of the log, in their order', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    await addLogLines(shard.hot, { tenant: TENANT, job: id, fence: 1 }, [json, '1', json], 1e6, Date.now());
    const lines = await readLogLines(shard.pool, TENANT, id, 0, { rows: 10, bytes: 1_000_000 });
    expect(lines.rows.map((row) => row.line)).toEqual([json, '1', json]);
  });

  it("survives a caller's transaction, and can be looked at before the leader has read it", async () => {
    const submission = `{"task":"greet","queue":"slow","key":${JSON.stringify(`tx ${json}`)},"payload":${json}}`;
    const { rows } = await shard.pool.query('SELECT punctual.submit_job($1, $2) AS id', [TENANT, submission]);
    const id = rows[0].id as string;
    expect(await read(id)).toMatchObject({ raw: true, task: 'greet', queue: 'slow', state: 'pending' });
    expect(await findKey(shard.pool, TENANT, 'no such key')).toBeNull();
    const listed = await listJobs(
      shard.reads,
      TENANT,
      { queue: 'slow', task: 'greet' },
      { rows: 50, bytes: 1_000_000 },
      1_000,
    );
    expect(listed.rows.map((row) => row.id)).toContain(id);
    expect((await readSubmissions(shard.hot, [id])).get(id)).toBe(submission);
    const { row } = await shard.newJob();
    await parseLater(shard.hot, term, [{ row: { ...row, id, payload: json }, admitAt: 0, held: false }]);
    await admitJobs(shard.hot, term, [unchanged(id)]);
    expect(await read(id)).toMatchObject({ place: 'live', payload: json });
  });
});

describe('a batch with a row that the database refuses', () => {
  const BROKEN = '{"not":"json"';
  const TOO_DEEP = '['.repeat(200_000);

  it.each([BROKEN, TOO_DEEP])('is halved until the others have finished (%#)', async (bad) => {
    const ids = await shard.submitMany(20);
    await shard.claim(term, ids);
    const refused: string[] = [];
    const done = await bisect(
      ids.map((id, i) => ({ id, result: i === 13 ? bad : '{"ok":true}' })),
      (part) => shard.finish(term, [...part]),
      (ending) => refused.push(ending.id),
    );
    expect(refused).toEqual([ids[13]]);
    expect([...done].sort()).toEqual(ids.filter((_, i) => i !== 13).sort());
    expect((await read(ids[13]!)).state).toBe('running');
    expect((await read(ids[12]!)).state).toBe('succeeded');
  });

  it('is halved until the others are stored', async () => {
    const jobs = await Promise.all(Array.from({ length: 9 }, () => shard.newJob()));
    const bad = { ...jobs[4]!, row: { ...jobs[4]!.row, payload: BROKEN } };
    const refused: string[] = [];
    await bisect(
      jobs.map((job, i) => (i === 4 ? bad : job)),
      (part) => shard.store(part),
      (job) => refused.push(job.row.id),
    );
    expect(refused).toEqual([bad.row.id]);
    expect(await readJob(shard.hot, TENANT, bad.row.id)).toBeNull();
    expect((await read(jobs[8]!.row.id)).state).toBe('pending');
  });

  it('is halved until the others are claimed, when one of them runs already', async () => {
    const ids = await shard.submitMany(8);
    await shard.claim(term, [ids[3]!]);
    const refused: string[] = [];
    const rows = await bisect(
      ids,
      (part) => shard.claim(term, part),
      (id) => refused.push(id),
    );
    expect(refused).toEqual([ids[3]]);
    expect(rows.map((row) => row.id).sort()).toEqual(ids.filter((_, i) => i !== 3).sort());
  });

  it('is not halved when the failure is no fault of the data', async () => {
    const old = { ...term, epoch: term.epoch - 1 };
    let tries = 0;
    const run = (part: readonly string[]) => {
      tries += 1;
      return shard.claim(old, part);
    };
    await expect(bisect(await shard.submitMany(4), run, () => undefined)).rejects.toThrow('is over');
    expect(tries).toBe(1);
  });
});
