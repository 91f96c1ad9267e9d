import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { nodeForTest } from '../../node-for-tests.js';

it('requests that wait for another with their key hold up no other tenant', async () => {
  const node = await nodeForTest();
  await vi.waitFor(() => expect(node.node.leads()).toBe(true));
  for (const tenant of ['acme', 'other']) {
    await node.submit({ task: 'work', queue: 'mail' }, tenant);
    const body = { name: 'often', task: 'work', every: '1h' };
    await node.get('POST', '/v1/schedules', { tenant, body });
  }
  const paths = [
    '/v1/tasks',
    '/v1/queues/mail/pause',
    '/v1/schedules/often/run',
    '/v1/schedules/often/pause',
  ];
  const COUNT = 5;
  const holder = new pg.Client({ connectionString: node.database.url });
  await holder.connect();
  await holder.query('BEGIN');
  // As bulks at another node do that are being stored.
  await holder.query(
    `INSERT INTO punctual.idempotency (tenant, key, request, status, created_at)
     SELECT 'acme', 'key ' || i, '\\x00', 201, 0 FROM generate_series(0, $1) i`,
    [paths.length * COUNT],
  );
  const bodyOf = (path: string) => (path === '/v1/tasks' ? { body: { name: 'work' } } : {});
  for (const [i, path] of paths.entries()) {
    const waiting = Array.from({ length: COUNT }, (_, n) =>
      node.ask('POST', path, {
        ...{ tenant: 'acme', headers: { 'idempotency-key': `key ${i * COUNT + n}` } },
        ...bodyOf(path),
      }),
    );
    const begun = performance.now();
    await node.get('POST', path, { tenant: 'other', ...bodyOf(path) });
    expect(performance.now() - begun).toBeLessThan(1_500);
    for (const { status, body } of await Promise.all(waiting))
      expect([status, body.code]).toEqual([409, 'IDEMPOTENCY_IN_FLIGHT']);
  }
  await holder.end();
});
