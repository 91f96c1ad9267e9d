import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { task } from '../../src/core/task.js';
import type { ClusterView } from '../../src/core/wire.js';
import { Door } from '../happening.js';
import { nodeForTest } from '../node-for-tests.js';

const TABLES = ['jobs', 'later', 'claims', 'job_history', 'tallies'];

/** Makes the database refuse every new row as one whose disk is full does; answers with a way to make room. */
async function fillDisk(databaseUrl: string, code: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`
    CREATE FUNCTION punctual.refuse_rows() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '${code}';
    END $$`);
  const each = (change: (table: string) => string) => client.query(TABLES.map(change).join(';'));
  await each(
    (table) =>
      `CREATE TRIGGER refuse BEFORE INSERT ON punctual.${table} EXECUTE FUNCTION punctual.refuse_rows()`,
  );
  return async () => {
    await each((table) => `DROP TRIGGER refuse ON punctual.${table}`);
  };
}

it.each([
  ['53100', 'disk'],
  ['53200', 'memory'],
])(
  'a database with SQLSTATE %s is a 503 that names the cause, and afterwards all goes on',
  async (code, cause) => {
    const node = await nodeForTest({ settings: { heartbeatInterval: '200ms', workerTimeout: '2s' } });
    const door = new Door();
    const work = task('work', {}, async ({ n }: { n: number }) => {
      await door.opened;
      return n;
    });
    await node.work([work]);
    const running = await node.submit({ task: 'work', payload: { n: 1 } });
    await expect.poll(async () => (await node.job(running.id)).state).toBe('running');
    const epoch = async () => (await node.get<ClusterView>('GET', '/v1/cluster')).shards[0]!.epoch;
    const before = await epoch();
    const makeRoom = await fillDisk(node.database.url, code);
    const submission = { body: { task: 'work', payload: { n: 2 } } };
    for (const path of ['/v1/jobs', '/v1/jobs/bulk']) {
      const body = path === '/v1/jobs' ? submission.body : { jobs: [submission.body] };
      const refused = await node.ask('POST', path, { body });
      expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([
        503,
        'DATABASE_UNAVAILABLE',
        '1',
      ]);
      expect(refused.body.detail).toContain(cause);
    }
    expect((await node.ask('POST', `/v1/jobs/${running.id}/cancel`)).status).not.toBe(500);
    door.open();
    await makeRoom();
    const later = await node.submit(submission.body);
    expect((await node.ended(later.id)).result).toBe(2);
    expect((await node.ended(running.id)).state).toMatch(/succeeded|cancelled/);
    expect(await epoch()).toBe(before);
  },
  20_000,
);
