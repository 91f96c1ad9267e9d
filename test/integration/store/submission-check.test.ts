import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PunctualError } from '../../../src/core/errors.js';
import { nearlyFromSchema } from '../../../src/core/schemas/from-schema.fixture.js';
import { JobSubmission } from '../../../src/core/schemas/submission.js';
import { parseSubmission, readSubmissionText } from '../../../src/core/submission.js';
import { loadMigrations } from '../../../src/store/migrations.js';
import { submissionCheckSql } from '../../../src/store/submission-check-sql.js';
import { type ClonedDatabase, createTestDatabase } from '../../database.js';

let database: ClonedDatabase;
let client: pg.Client;

const NOW = Date.UTC(2026, 0, 1);
const LIMITS = {
  maxPayload: 600,
  jobTimeout: 60_000,
  maxJobTimeout: 3_600_000,
  maxDepth: 64,
  allowCommands: true,
};

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('UPDATE punctual.cluster SET max_payload = $1, max_job_timeout = $2', [
    LIMITS.maxPayload,
    LIMITS.maxJobTimeout,
  ]);
  // The code with which a submission is refused, or null.
  await client.query(`
    CREATE FUNCTION pg_temp.verdict(submission json, now_ms bigint) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE code text;
    BEGIN
      PERFORM punctual.check_submission(CASE WHEN strpos(submission::text, '\\u') = 0 THEN submission
        ELSE punctual.checkable(submission, '\\/') END, now_ms);
      RETURN NULL;
    EXCEPTION WHEN invalid_parameter_value THEN
      GET STACKED DIAGNOSTICS code = PG_EXCEPTION_DETAIL;
      RETURN code;
    END $$`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** What the function in the database says about submissions, each as JSON text. */
async function inSql(texts: readonly string[]): Promise<(string | null)[]> {
  const { rows } = await client.query(
    `SELECT pg_temp.verdict(t.text::json, $2) AS code FROM unnest($1::text[]) WITH ORDINALITY t(text, n) ORDER BY n`,
    [texts, NOW],
  );
  return rows.map((row) => row.code as string | null);
}

/** What the node that admits the job says. */
function inNode(text: string): string | null {
  return refusalInNode(text)?.code ?? null;
}

function refusalInNode(text: string): PunctualError | null {
  try {
    parseSubmission(readSubmissionText(text, LIMITS), { ...LIMITS, now: NOW });
    return null;
  } catch (error) {
    if (error instanceof PunctualError) return error;
    throw error;
  }
}

/** What SQL does not look at: the inside of URLs, references to secrets in bodies, and the sizes of targets. */
function isLeftToNode(text: string): boolean {
  const pointers = refusalInNode(text)?.errors.map(({ pointer }) => pointer) ?? [];
  const isLarge = ['http', 'exec'].includes(JSON.parse(text).target?.type);
  return isLarge && pointers.every((each) => /^\/target(\/url|\/body\b.*)?$/.test(each));
}

/** Where several things are wrong, the two may name another one first. */
async function expectAgreement(texts: readonly string[]): Promise<{ good: number; bad: number }> {
  const [sql, node] = [await inSql(texts), texts.map(inNode)];
  const differ = texts.flatMap((text, i) =>
    (sql[i] === null) === (node[i] === null) || (sql[i] === null && isLeftToNode(text))
      ? []
      : [{ text, sql: sql[i], node: node[i] }],
  );
  expect(differ).toEqual([]);
  return { good: node.filter((code) => code === null).length, bad: node.filter(Boolean).length };
}

describe('the database and the nodes', () => {
  it('agree about submissions that are nearly right', async () => {
    const made = fc.sample(nearlyFromSchema(JobSubmission, { task: 'a' }), 3_000);
    const texts = made.flatMap((value) => {
      try {
        const text = JSON.stringify(value);
        // Numbers of such exponents are left to the node that admits the job.
        if (/[0-9]e[+-][0-9]{3}/.test(text)) return [];
        return typeof value === 'object' && value !== null && !Array.isArray(value) ? [text] : [];
      } catch {
        return [];
      }
    });
    const { good, bad } = await expectAgreement(texts);
    expect(good).toBeGreaterThan(100);
    expect(bad).toBeGreaterThan(100);
  });

  it('agree about calls: URLs, headers, statuses and secrets', async () => {
    const urls = [
      ...['http://a', 'HTTPS://A:8443/x?y#z', ' http://a ', 'http:a', 'http:/a', 'http:\\\\a', 'http:///a/b'],
      ...[
        'http://@a',
        'http://:@a',
        'http://u@a',
        'http://:p@a',
        'http://a/u@b',
        'http://a?u@b',
        'http:// a',
      ],
      ...[
        '',
        'a',
        'http',
        'http:',
        'http://',
        'http:///',
        'http://?a',
        'ftp://a',
        'httpx://a',
        'http://[::1]',
      ],
      `http://a/${'x'.repeat(300)}`,
    ];
    const reference = { $secret: 'key', prefix: 'Bearer ' };
    const headers = [
      {},
      { a: '', 'x-b': 'é', C: reference },
      ...['Host', 'te', 'tea', 'Punctual-X', 'punctual', 'PROXY-A', 'ä', '', 'a b', 'x'.repeat(128)].map(
        (name) => ({
          [name]: 'x',
        }),
      ),
      ...['ü', 'ā', '🎉', 'a\tb', 5, null, [], {}, 'x'.repeat(500)].map((value) => ({ a: value })),
      ...[{ $secret: 5 }, { $secret: 'a b' }, { $secret: 'a', x: 1 }, { prefix: 'a' }].map((a) => ({ a })),
      ...['', 'é', '🎉', 'a\u0001', 5].map((prefix) => ({ a: { $secret: 'k', prefix } })),
      Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`h${i}`, ''])),
      Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`h${i}`, ''])),
    ];
    const statuses = [
      [],
      [200],
      [199],
      [599, 600],
      [200.5],
      ['200'],
      200,
      null,
      Array(100).fill(200),
      Array(101).fill(200),
    ];
    const others = [
      ...['GET', 'POST', 'HEAD', 'get', 'TRACE', 5].flatMap((method) => [{ method }, { method, body: null }]),
      ...['1ms', '0s', '0.4ms', '1h', 'x'].map((timeout) => ({ timeout })),
      ...[0, 5, 6, 1.5].map((redirects) => ({ redirects })),
      ...['auto', 'response', 'x'].map((completion) => ({ completion })),
    ];
    const call = (fields: object) => JSON.stringify({ target: { type: 'http', url: 'http://a', ...fields } });
    const { good, bad } = await expectAgreement([
      ...urls.map((url) => call({ url })),
      ...headers.map((each) => call({ headers: each })),
      ...statuses.flatMap((each) => [call({ expect: each }), call({ retryStatuses: each })]),
      ...others.map(call),
    ]);
    expect([good > 25, bad > 25]).toEqual([true, true]);
    // What SQL can tell, it tells: only these are left to the node.
    const left = urls.filter((url) => inNode(call({ url })) !== null);
    const verdicts = await inSql(left.map((url) => call({ url })));
    expect(left.filter((_, i) => verdicts[i] === null)).toEqual([]);
  });

  it('agree about programs: arguments, variables, limits and secrets', async () => {
    const texts = [
      '',
      'x',
      'two\nlines\t',
      'é🎉',
      'a\u0001',
      '\u000b',
      '\u007f',
      'x'.repeat(400),
      5,
      null,
      {},
    ];
    const env = [
      ...['A', '_a1', '1A', '', 'A-B', 'LD_PRELOAD', 'LDA', 'PUNCTUAL_X', 'TRACEPARENT', 'x'.repeat(129)].map(
        (name) => ({ [name]: 'x' }),
      ),
      ...texts.map((value) => ({ A: value })),
      ...[{ $secret: 'a' }, { $secret: 5 }, { $secret: 'a', x: 1 }, { $secret: 'a', prefix: '' }].map(
        (A) => ({ A }),
      ),
      { A: { $secret: 'a', prefix: '🎉' } },
    ];
    const limits = [
      ...[{}, { ram: 5 }, [], 5, { cpuTime: '0s' }, { cpuTime: '1ms' }, { cpuTime: 'x' }],
      ...['cpus', 'memory', 'files', 'processes', 'output', 'disk'].flatMap((name) =>
        [-1, 0, 0.5, 1, 8, 1_024, 2 ** 20, 2 ** 50, 2 ** 51, '5', null].map((value) => ({ [name]: value })),
      ),
    ];
    const others = [
      ...[
        { artifact: 'a' },
        { command: undefined },
        { command: undefined, artifact: 'a@1' },
        { command: '' },
      ],
      ...['none', 'auto', 'required', 'full', 5].map((isolation) => ({ isolation })),
      ...[[], Array(256).fill(''), Array(257).fill(''), 'x'].map((args) => ({ args })),
    ];
    const program = (fields: object) =>
      JSON.stringify({ target: { type: 'exec', command: 'ls', ...fields } });
    const { good, bad } = await expectAgreement([
      ...texts.map((text) => program({ args: [text] })),
      ...env.map((each) => program({ env: each })),
      ...limits.map((each) => program({ limits: each })),
      ...others.map(program),
    ]);
    expect([good > 25, bad > 25]).toEqual([true, true]);
  });

  it('agree about durations', async () => {
    const unit = fc.constantFrom('ms', 's', 'm', 'h', 'd', 'w', '', 'S', ' s', 's\n');
    const number = fc.oneof(
      fc.nat().map(String),
      fc.constantFrom(
        '0',
        '0.4',
        '0.5',
        '1.5',
        '36600',
        '36600.000001',
        '52704000',
        '3162240000',
        '3162240000.0004',
      ),
      fc.constantFrom('', '.5', '5.', '1e3', '-1', '٣', '1'.repeat(15), '1'.repeat(16), '1.1234567', '1_0'),
    );
    const durations = fc.sample(fc.tuple(number, unit), 500).map((parts) => parts.join(''));
    const texts = durations.flatMap((duration) => [
      JSON.stringify({ task: 'a', delay: duration }),
      JSON.stringify({ task: 'a', timeout: duration }),
      JSON.stringify({ task: 'a', retry: { backoff: { base: duration } } }),
    ]);
    await expectAgreement(texts);
  });

  it('agree about moments', async () => {
    const two = (most: number) => fc.integer({ min: 0, max: most }).map((n) => String(n).padStart(2, '0'));
    const year = fc.constantFrom('0000', '0001', '1900', '1970', '2000', '2024', '2025', '2026', '9999');
    const zone = fc.oneof(
      fc.constantFrom('Z', 'z', '+00:00', '-00:00', '+14:00', '-23:59', '+24:00', '', '+1:00', '+0100'),
      fc.tuple(fc.constantFrom('+', '-'), two(25), two(61)).map(([sign, h, m]) => `${sign}${h}:${m}`),
    );
    const fraction = fc.constantFrom('', '.1', '.12', '.123', '.9999', '.123456789', '.1234567890', '.');
    const between = fc.constantFrom('T', 't', ' ');
    const made = fc.sample(
      fc.tuple(year, two(13), two(32), between, two(25), two(61), two(61), fraction, zone),
      800,
    );
    // Mostly within bounds, so that the last days of months are met.
    const near = fc.sample(fc.tuple(year, two(12), fc.integer({ min: 28, max: 31 }), zone), 400);
    const moments = [
      ...made.map(([y, mo, d, t, h, mi, s, f, z]) => `${y}-${mo}-${d}${t}${h}:${mi}:${s}${f}${z}`),
      ...near.map(([y, mo, d, z]) => `${y}-${mo}-${d}T23:59:59.999${z}`),
    ];
    const { good } = await expectAgreement([
      ...moments.map((runAt) => JSON.stringify({ task: 'a', runAt })),
      ...moments.map((startBefore) => JSON.stringify({ task: 'a', startBefore, delay: '1ms' })),
      ...['2026-01-01T00:00:00.001Z', '2026-01-01T01:00:00.002+01:00', '2025-12-31T23:00:00.001-01:00'].map(
        (startBefore) => JSON.stringify({ task: 'a', startBefore, runAt: '2026-01-01T00:00:00.001Z' }),
      ),
    ]);
    expect(good).toBeGreaterThan(50);
  });

  it('agree about numbers however they are written', async () => {
    const numbers = [
      '1',
      '9',
      '5.0',
      '5e0',
      '0.5e1',
      '50E-1',
      '-1',
      '0',
      '10',
      '1.5',
      '9.0000000000000000001',
    ];
    const odd = ['9.1', '1e2', '0.99999999999999999999', '1e-5', '1e99', '-0', '"5"', 'null', 'true', '[5]'];
    const texts = [...numbers, ...odd].flatMap((number) => [
      `{"task": "a", "priority": ${number}}`,
      `{"task": "a", "retry": {"maxAttempts": ${number}}}`,
      `{"task": "a", "retry": {"backoff": {"factor": ${number}, "jitter": ${number}}}}`,
      `{"task": "a", "delivery": "at-most-once", "retry": {"onWorkerLost": {"maxAttempts": ${number}}}}`,
    ]);
    await expectAgreement(texts);
  });

  it('agree about characters: escaped ones, halves of pairs, backslashes, lengths in code points', async () => {
    const strings = [
      '\\u0000',
      '\\\\u0000',
      '\\\\\\u0000',
      '\\ud800',
      '\\ud83d\\ude00',
      '\\\\ud83d\\ude00',
      '\\ude00\\ud83d',
      '\\ud83d\\ud83d\\ude00',
      '\\ud83d\\\\ude00',
      '\\u00e9 \\"',
      '\\u001f',
      '\\u007f',
      '\\n',
      '\\ud83d\\ude00'.repeat(512),
      '\\ud83d\\ude00'.repeat(513),
      'ü'.repeat(512),
      'ü'.repeat(513),
      '',
    ];
    const fields = ['key', 'task', 'queue', 'payload', 'delay', 'concurrencyKey', 'unknown'];
    const texts = strings.flatMap((string) => [
      ...fields.map((field) => `{"task": "a", "${field}": "${string}"}`),
      `{"task": "a", "requires": {"${string}": "x"}}`,
      `{"task": "a", "requires": {"x": "${string}"}}`,
      `{"task": "a", "${string}": 1}`,
    ]);
    await expectAgreement(texts);
  });

  it('agree about labels and sizes at their bounds', async () => {
    const labels = (count: number, length: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`l"${i}`, 'é'.repeat(length)]));
    const requires = [
      ...[0, 1, 32, 33].map((count) => labels(count, 1)),
      ...[116, 117, 118, 119, 120, 121].map((length) => labels(16, length)),
      { ['x'.repeat(128)]: '' },
      { ['x'.repeat(129)]: '' },
      { a: 'x'.repeat(257) },
      { a: 5 },
      [],
    ];
    const payloads = [597, 598, 599, 600, 700].map((length) => 'x'.repeat(length));
    const { good, bad } = await expectAgreement([
      ...requires.map((each) => JSON.stringify({ task: 'a', requires: each })),
      ...payloads.map((payload) => JSON.stringify({ task: 'a', payload })),
      `{"task": "a", "payload":   [1,  2]   }`,
      ...[290, 296, 297].map((count) => `{"task":"a","payload":"\\u00e9${'\\\\'.repeat(count)}"}`),
    ]);
    expect([good > 5, bad > 5]).toEqual([true, true]);
  });
});

it('the database refuses with the codes of the API', async () => {
  const texts = [
    ['{"task": "a"}', null],
    ['{"target": {"type": "handler", "name": "a"}}', null],
    ['{"target": {"type": "handler"}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://a"}}', null],
    ['{"target": {"type": "http", "url": "ftp://a"}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://"}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://u:p@a/"}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://a", "headers": {"Host": "b"}}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://a", "method": "GET", "body": 1}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://a", "timeout": "0s"}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "http", "url": "http://a", "expect": [99]}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "exec", "command": "ls"}}', null],
    ['{"target": {"type": "exec"}}', 'INVALID_REQUEST'],
    ['{"target": {"type": "ftp"}}', 'INVALID_REQUEST'],
    [`{"task": "a", "payload": "${'x'.repeat(600)}"}`, 'PAYLOAD_TOO_LARGE'],
    ['{"task": "a", "timeout": "2h"}', 'INVALID_REQUEST'],
  ] as const;
  const expected = texts.map(([, code]) => code);
  expect(await inSql(texts.map(([text]) => text))).toEqual(expected);
  expect(texts.map(([text]) => inNode(text))).toEqual(expected);
});

it('a key is known before its job is admitted, whatever is escaped in it', async () => {
  for (const key of ['plain', 'C:\\new\\u0000', 'é\\']) {
    const text = JSON.stringify({ task: 'a', key }).replace('é', '\\u00e9');
    const { rows } = await client.query(`SELECT punctual.submit_job('keys', $1) AS id`, [text]);
    const stored = await client.query('SELECT key FROM punctual.later WHERE id = $1', [rows[0].id]);
    expect([stored.rows[0].key, inNode(text)]).toEqual([key, null]);
  }
});

it('the newest check in the migrations is what the schema makes of it', () => {
  const marker = 'CREATE OR REPLACE FUNCTION punctual.check_submission(';
  const newest = loadMigrations()
    .filter(({ sql }) => sql.includes(marker))
    .at(-1)!;
  // After a change of the schema, add a migration with the output of `npm run -s submission-check`.
  expect(newest.sql).toContain(submissionCheckSql());
});
