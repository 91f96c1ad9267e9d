import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LAST_UUID } from '../../../src/core/uuid.js';
import { findJobs } from '../../../src/store/find-jobs.js';
import { Stride } from '../../../src/store/job-search.js';
import { TENANT, TestShard } from './test-shard.js';

let shard: TestShard;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  await shard.submit();
  await shard.pool.query('DELETE FROM punctual.jobs');
});
afterAll(() => close());

const hex = (code: number, upper: boolean) => {
  const digits = code.toString(16).padStart(4, '0');
  return `\\u${upper ? digits.toUpperCase() : digits}`;
};

/** Pieces of a JSON string, and among them all that is an escape but for what stands beside it. */
const PIECES = [
  '\\\\',
  '\\"',
  '\\n',
  '\\/',
  'u0000',
  'ud83d',
  'ude00',
  'a',
  '😀',
  '\\u0000',
  '\\ud83d',
  '\\uDE00',
];
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...PIECES) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.integer({ min: 0, max: 0xffff }), fc.boolean()).map(([c, u]) => hex(c, u)),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.integer({ min: 0xd800, max: 0xdfff }), fc.boolean()).map(([c, u]) => hex(c, u)),
  },
);
const literal = fc.array(piece, { maxLength: 7 }).map((pieces) => `"${pieces.join('')}"`);

/** A payload with a field `e`, and perhaps another field that Postgres cannot parse. */
const payload = fc
  .tuple(literal, fc.constantFrom('', '"x":"\\u0000",', '"\\udc00":1,'))
  .map(([text, before]) => `{${before}"e":${text}}`);

/** NUL and halves of surrogate pairs are compared as U+FFFD. */
const compared = (payload: string): string =>
  (JSON.parse(payload) as { e: string }).e.replaceAll('\0', '\ufffd').replace(/\p{Surrogate}/gu, '\ufffd');

/** One job of each place with each payload. */
async function store(payloads: readonly string[]): Promise<Map<string, string>> {
  await shard.pool.query('TRUNCATE punctual.jobs, punctual.later, punctual.job_history CASCADE');
  const columns = `id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms, created_at,
    task, created_by, payload`;
  const values = `gen_random_uuid(), '${TENANT}', q.id, 1, 5, 0, 4, 3, false, 1000, 0, 'greet', 'test', p.text::json`;
  const from = `FROM unnest($1::text[]) p(text), punctual.queues q WHERE q.tenant = '${TENANT}'`;
  const { rows } = await shard.pool.query(
    `WITH live AS (INSERT INTO punctual.jobs (${columns}) SELECT ${values} ${from} RETURNING id, payload::text),
       parsed AS (
         INSERT INTO punctual.later (${columns}, admit_at) SELECT ${values}, 0 ${from} RETURNING id, payload::text),
       unparsed AS (
         INSERT INTO punctual.later (id, tenant, admit_at, submission, created_at, created_by)
         SELECT gen_random_uuid(), '${TENANT}', 0, ('{"task":"greet","payload":' || p.text || '}')::json, 0, 'test'
         FROM unnest($1::text[]) p(text) RETURNING id, substr(submission::text, 27, length(submission::text) - 27)),
       ended AS (
         INSERT INTO punctual.job_history (${columns}, attempts, failures, losses, state, finished_at)
         SELECT ${values}, 1, 0, 0, 'succeeded', $2::bigint ${from} RETURNING id, payload::text)
     SELECT * FROM live UNION ALL SELECT * FROM parsed UNION ALL SELECT * FROM unparsed UNION ALL SELECT * FROM ended`,
    [payloads, Date.now()],
  );
  return new Map(rows.map(({ id, payload }) => [id, payload]));
}

it('a filter finds the payloads whose string is the same, however it is escaped', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(payload, { minLength: 30, maxLength: 60 }), async (payloads) => {
      const stored = await store(payloads);
      expect(new Set(stored.values())).toEqual(new Set(payloads));
      for (const value of new Set(payloads.map(compared))) {
        const search = { payload: [{ path: ['e'], kind: 'string', value } as const] };
        const page = await findJobs(shard.hot, TENANT, search, LAST_UUID, 1_000, new Stride(search, 1_000));
        const expected = [...stored].filter(([, text]) => compared(text) === value).map(([id]) => id);
        expect(page.jobs.map(({ id }) => id).sort()).toEqual(expected.sort());
        expect(page.next).toBeNull();
      }
    }),
    { numRuns: 20 },
  );
}, 120_000);
