import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { task } from '../../src/core/task.js';
import { uuidv7 } from '../../src/core/uuid.js';
import type { LeaderState } from '../../src/dispatch/leader-state.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { until } from './store/test-shard.js';

/**
 * One node for all; each test has a tenant of its own. They run side by side, because each of them waits for the
 * pass that admits once a second.
 */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const double = task('double', (n: number) => n * 2);

/** Runs something inside a transaction of its own and ends it as told. */
function inTransaction<T>(end: 'COMMIT' | 'ROLLBACK', work: (tx: pg.Client) => Promise<T>): Promise<T> {
  return withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    const value = await work(client);
    await client.query(end);
    return value;
  });
}

it.concurrent('a job submitted in a transaction runs when that commits, and not before', async () => {
  const tenant = 'commit';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const handle = await inTransaction('COMMIT', async (tx) => {
    const submitted = await punctual.submit(double, 21, { tx });
    expect(await node.ask('GET', `/v1/jobs/${submitted.id}`, { tenant })).toMatchObject({ status: 404 });
    return submitted;
  });
  expect(await handle.result()).toBe(42);
  expect(await handle.get()).toMatchObject({
    state: 'succeeded',
    payload: 21,
    attempt: 1,
    createdBy: expect.stringMatching(/^transaction:/),
  });
});

it.concurrent('a job submitted in a transaction that is rolled back never existed', async () => {
  const tenant = 'rollback';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const gone = await inTransaction('ROLLBACK', (tx) => punctual.submit(double, 1, { tx, key: 'k' }));
  const kept = await inTransaction('COMMIT', (tx) => punctual.submit(double, 2, { tx, key: 'k' }));
  expect(await kept.result()).toBe(4);
  expect(await node.ask('GET', `/v1/jobs/${gone.id}`, { tenant })).toMatchObject({ status: 404 });
  expect(await punctual.getByKey('k')).toMatchObject({ id: kept.id });
});

it.concurrent('an open transaction holds nobody up', async () => {
  const tenant = 'open';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  await inTransaction('ROLLBACK', async (tx) => {
    await punctual.submit(double, 1, { tx, key: 'shared' });
    const other = await punctual.submit(double, 2, { key: 'shared' });
    expect(await other.result()).toBe(4);
    const committed = await inTransaction('COMMIT', (tx2) => punctual.submit(double, 3, { tx: tx2 }));
    expect(await committed.result()).toBe(6);
  });
});

it.concurrent('a key that visibly has a job is answered with that job', async ({ expect }) => {
  const tenant = 'key';
  const punctual = node.connect(tenant);
  const first = await punctual.submit(double, 1, { key: 'order', hold: true });
  const again = await inTransaction('COMMIT', (tx) => punctual.submit(double, 2, { tx, key: 'order' }));
  expect(again.id).toBe(first.id);
  expect(await first.get()).toMatchObject({ state: 'pending', payload: 1 });
});

it.concurrent('a key that was taken meanwhile makes the job a skipped one, which gives the result of the other', async ({
  expect,
}) => {
  const tenant = 'meanwhile';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const [first, second] = await inTransaction('COMMIT', async (tx) => {
    const mine = await punctual.submit(double, 2, { tx, key: 'order' });
    return [await punctual.submit(double, 1, { key: 'order' }), mine];
  });
  expect(await second!.result()).toBe(2);
  expect(await second!.get()).toMatchObject({
    state: 'skipped',
    error: { code: 'DUPLICATE_KEY', message: expect.stringMatching(/payload/), job: first!.id },
  });
  expect(await punctual.getByKey('order')).toMatchObject({ id: first!.id, payload: 1 });
});

it.concurrent('two with the same key in one transaction are one job and one skipped', async ({ expect }) => {
  const tenant = 'twice';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const handles = await inTransaction('COMMIT', async (tx) => [
    await punctual.submit(double, 1, { tx, key: 'same' }),
    await punctual.submit(double, 2, { tx, key: 'same' }),
  ]);
  const ended = await Promise.all(handles.map((handle) => node.ended(handle.id, tenant)));
  expect(ended.map((job) => job.state)).toEqual(['succeeded', 'skipped']);
});

it.concurrent('replacements in one transaction count in the order in which they were made', async ({
  expect,
}) => {
  const tenant = 'in-order';
  const punctual = node.connect(tenant);
  const options = { key: 'k', keyMode: 'replace', hold: true } as const;
  const handles = await inTransaction('COMMIT', async (tx) => {
    const all = [];
    for (let n = 0; n < 6; n++) all.push(await punctual.submit(double, n, { ...options, tx }));
    return all;
  });
  const [first, ...rest] = handles;
  for (const { id } of rest) {
    expect(await node.ended(id, tenant)).toMatchObject({ state: 'skipped', error: { job: first!.id } });
  }
  expect(await first!.get()).toMatchObject({ state: 'pending', payload: 5 });
});

it.concurrent('a replacement that is committed late does not overwrite one that was made after it', async ({
  expect,
}) => {
  const tenant = 'late';
  const punctual = node.connect(tenant);
  const options = { key: 'k', keyMode: 'replace', hold: true } as const;
  const { id } = await punctual.submit(double, 1, options);
  const old = await inTransaction('COMMIT', async (tx) => {
    const made = await punctual.submit(double, 2, { ...options, tx });
    await punctual.submit(double, 3, options);
    return made;
  });
  expect(await node.ended(old.id, tenant)).toMatchObject({ state: 'skipped', error: { job: id } });
  expect(await node.job(id, tenant)).toMatchObject({ payload: 3 });
  const newer = await inTransaction('COMMIT', (tx) => punctual.submit(double, 4, { ...options, tx }));
  expect(await node.ended(newer.id, tenant)).toMatchObject({ state: 'skipped', error: { job: id } });
  expect(await node.job(id, tenant)).toMatchObject({ payload: 4 });
});

it.concurrent('a job can be replaced in the very batch that admits it', async ({ expect }) => {
  const tenant = 'same-batch';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const jobs = await Promise.all(
    [1, 2, 3].map((n) => punctual.submit(double, n, { key: `k${n}`, delay: '1h' })),
  );
  await inTransaction('COMMIT', async (tx) => {
    await tx.query('UPDATE punctual.later SET admit_at = 0 WHERE tenant = $1', [tenant]);
    for (const n of [1, 2, 3]) {
      const time = n === 1 ? { delay: '2h' as const } : {};
      await punctual.submit(double, n * 10, { tx, key: `k${n}`, keyMode: 'replace', ...time });
    }
  });
  expect(await jobs[1]!.result()).toBe(40);
  expect(await jobs[2]!.result()).toBe(60);
  const [far] = jobs;
  expect(await far!.get()).toMatchObject({ state: 'pending', payload: 10 });
  // It was about to become live when it was postponed.
  const waits = await withClient(node.database.url, (client) =>
    client.query('SELECT id FROM punctual.later WHERE tenant = $1', [tenant]),
  );
  expect(waits.rows).toEqual([{ id: far!.id }]);
  expect(await punctual.cancel(far!.id)).toMatchObject({ state: 'cancelled' });
});

it.concurrent('a job whose turn somebody has is replaced when that is over, and nobody else waits for it', async ({
  expect,
}) => {
  const tenant = 'busy';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const { id } = await punctual.submit(double, 1, { key: 'k', delay: '5m' });
  const { state } = node.node.context.shardOf(tenant).currentLeader() as unknown as { state: LeaderState };
  await state.turn(id);
  const beside = node.connect('beside-busy');
  const theirs = await beside.submit(double, 1, { key: 'k', delay: '5m' });
  const replace = { key: 'k', keyMode: 'replace', delay: '5m' } as const;
  const [replacing, other, replacingTheirs] = await inTransaction('COMMIT', async (tx) => [
    await punctual.submit(double, 2, { ...replace, tx }),
    await punctual.submit(double, 4, { tx }),
    await beside.submit(double, 2, { ...replace, tx }),
  ]);
  expect(await other!.result()).toBe(8);
  expect(await node.ended(replacingTheirs!.id, 'beside-busy')).toMatchObject({ error: { job: theirs.id } });
  expect(await theirs.get()).toMatchObject({ state: 'pending', payload: 2 });
  expect(await replacing!.get()).toMatchObject({ state: 'pending' });
  const cancelled = punctual.cancel(replacing!.id).then(
    () => 'cancelled',
    (error) => error.code,
  );
  state.turns.release(id);
  await state.follow([id]);
  expect(await node.ended(replacing!.id, tenant)).toMatchObject({ state: 'skipped', error: { job: id } });
  expect(await cancelled).toBe('JOB_ENDED');
  expect(await node.job(id, tenant)).toMatchObject({ state: 'pending', payload: 2 });
});

it.concurrent('a job that a transaction replaces fails if it is not started before its new startBefore', async ({
  expect,
}) => {
  const tenant = 'start-before';
  const punctual = node.connect(tenant);
  const { id } = await punctual.submit(double, 1, { key: 'k', delay: '1h' });
  const startBefore = new Date(Date.now() + 2_500);
  await inTransaction('COMMIT', (tx) =>
    punctual.submit(double, 2, { tx, key: 'k', keyMode: 'replace', startBefore }),
  );
  // The timer of the new moment ends it; the next look at everything that expires may be half a minute away.
  expect(await node.ended(id, tenant)).toMatchObject({ error: { code: 'EXPIRED' }, payload: 2 });
}, 20_000);

it.concurrent('modes mean the same in a transaction as over HTTP', async ({ expect }) => {
  const tenant = 'modes';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const submit = (n: number, options: object, isInside: boolean) =>
    isInside
      ? inTransaction('COMMIT', (tx) => punctual.submit(double, n, { ...options, tx }))
      : punctual.submit(double, n, options);
  const window = { keyWindow: '1h' };
  await Promise.all(
    [true, false].map(async (isInside) => {
      const key = (name: string) => `${name}-${isInside}`;
      const reuse = { key: key('reuse'), keyMode: 'reuse-when-ended' };
      const throttle = { key: key('throttle'), keyMode: 'throttle', ...window };
      const debounce = { key: key('debounce'), keyMode: 'debounce', ...window };
      for (const options of [reuse, throttle])
        expect(await (await submit(1, options, isInside)).result()).toBe(2);
      expect(await (await submit(2, reuse, isInside)).result()).toBe(4);
      expect(await (await submit(2, throttle, isInside)).result()).toBe(2);
      await submit(1, debounce, isInside);
      const last = await submit(2, debounce, isInside);
      if (isInside) await node.ended(last.id, tenant);
      expect(await punctual.getByKey(debounce.key)).toMatchObject({ state: 'pending', payload: 2 });
    }),
  );
});

it.concurrent('what is wrong with a submission is told before it is sent, and the transaction goes on', async ({
  expect,
}) => {
  const punctual = node.connect('checked');
  await inTransaction('COMMIT', async (tx) => {
    await expect(punctual.submit(double, 1, { tx, priority: 12 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/priority' }],
    });
    await tx.query('SELECT 1');
  });
});

it.concurrent('what only the nodes allow is refused by the database, as the API would', async ({
  expect,
}) => {
  const punctual = node.connect('limits');
  await limitsPublished();
  await inTransaction('ROLLBACK', async (tx) => {
    await expect(punctual.submit(double, 1, { tx, timeout: '5h' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/timeout', detail: expect.stringContaining('maxJobTimeout') }],
    });
  });
  await inTransaction('ROLLBACK', async (tx) => {
    await expect(punctual.submit('double', 'x'.repeat(300_000), { tx })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    });
  });
});

it.concurrent('a client that is not inside a transaction is refused, and so is a pool', async ({
  expect,
}) => {
  const punctual = node.connect('outside');
  await withClient(node.database.url, async (client) => {
    await expect(punctual.submit(double, 1, { tx: client })).rejects.toThrow(/outside of a transaction/);
    const pool = new pg.Pool({ connectionString: node.database.url });
    await expect(punctual.submit(double, 1, { tx: pool as never })).rejects.toThrow(/is a pool/);
    const { rows } = await client.query(`SELECT 1 FROM punctual.later WHERE tenant = 'outside'`);
    expect(rows).toEqual([]);
  });
});

/** The leader publishes its limits a moment after its term has begun. */
function limitsPublished(): Promise<void> {
  return withClient(node.database.url, (client) =>
    until(async () => {
      const { rows } = await client.query('SELECT max_job_timeout FROM punctual.cluster');
      return rows[0].max_job_timeout !== null;
    }),
  );
}

it.concurrent.for<[what: string, submission: string, expected: RegExp]>([
  ['an unknown field', '{"task": "double", "taks": 1}', /^punctual: \/taks: is not a known field$/],
  ['a bad priority', '{"task": "double", "priority": 77}', /^punctual: \/priority: must be a whole number/],
  [
    'a timeout beyond the maximum',
    '{"task": "double", "timeout": "5h"}',
    /^punctual: \/timeout: must be at most/,
  ],
  ['nothing to run', '{}', /^punctual: \/task: give either/],
  ['a queue that is no name', '{"task": "double", "queue": "a b"}', /^punctual: \/queue: must be/],
  ['a key that is no text', '{"task": "double", "key": {"a": 1}}', /^punctual: \/key: must be text/],
  ['a lone surrogate as its name', '{"task": "\\ud800"}', /^punctual: \/task: must be/],
  ['NUL as its name', '{"task": "a\\u0000b", "payload": 1}', /^punctual: \/task: must be/],
])(
  'a submission by SQL with %s is refused in its transaction',
  async ([, submission, message], { expect }) => {
    await limitsPublished();
    await withClient(node.database.url, async (client) => {
      const refused = client.query('SELECT punctual.submit_job($1, $2) AS id', ['refused', submission]);
      await expect(refused).rejects.toMatchObject({
        message: expect.stringMatching(message),
        detail: 'INVALID_REQUEST',
        code: '22023',
      });
    });
  },
);

it.concurrent.for<[what: string, submission: string, delayMs: number]>([
  [
    'nested too deeply',
    `{"task": "double", "delay": "1h", "payload": ${'['.repeat(80)}${']'.repeat(80)}}`,
    0,
  ],
  // As a version of the function that did not check could have stored it.
  ['a field that nobody knows', '{"task": "double", "taks": 1, "delay": "1h"}', 3_600_000],
  ['a time to start that is none', '{"task": "double", "runAt": "soon"}', 0],
])(
  'what only a node finds fails with a code and its true times: %s',
  async ([, submission, delayMs], { expect }) => {
    const tenant = 'unchecked';
    const createdAt = Date.now() - 5_000;
    const id = uuidv7(createdAt);
    await withClient(node.database.url, (client) =>
      client.query(
        `INSERT INTO punctual.later (id, tenant, admit_at, submission, created_at, created_by)
       VALUES ($1, $2, $3, $4, $3, 'test')`,
        [id, tenant, createdAt, submission],
      ),
    );
    expect(await node.ended(id, tenant)).toMatchObject({
      state: 'failed',
      error: { code: expect.stringMatching(/^(INVALID_REQUEST|MALFORMED_JSON)$/) },
      attempts: [],
      createdAt: new Date(createdAt).toISOString(),
      runAt: new Date(createdAt + delayMs).toISOString(),
    });
  },
);

it.concurrent.each([
  ['on hold', { hold: true }],
  ['due in the far future', { delay: '1h' }],
  ['on hold and due in the far future', { hold: true, delay: '1h' }],
] as const)(
  'a job that is %s can be submitted in a transaction and steered afterwards',
  async (what, options) => {
    const tenant = what.replaceAll(' ', '-');
    await node.work([double], { tenant });
    const punctual = node.connect(tenant);
    const { id } = await inTransaction('COMMIT', (tx) => punctual.submit(double, 5, { tx, ...options }));
    // JobControl does not have to wait for the admission.
    const steer = (verb: string, body?: unknown) =>
      node.get(verb === 'PATCH' ? 'PATCH' : 'POST', `/v1/jobs/${id}${verb === 'PATCH' ? '' : `/${verb}`}`, {
        tenant,
        ...(body !== undefined && { body }),
      });
    expect(await steer('PATCH', { priority: 8, runAt: '2020-01-01T00:00:00Z' })).toMatchObject({
      priority: 8,
    });
    if ('hold' in options) await steer('release');
    expect(await node.ended(id, tenant)).toMatchObject({ state: 'succeeded', result: 10 });
  },
);

it.concurrent('a job submitted in a transaction can be cancelled at once', async () => {
  const tenant = 'cancel';
  const punctual = node.connect(tenant);
  const { id } = await inTransaction('COMMIT', (tx) => punctual.submit(double, 5, { tx }));
  expect(await punctual.cancel(id)).toMatchObject({ state: 'cancelled' });
});
