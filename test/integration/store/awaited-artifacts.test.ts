import { expect, it } from 'vitest';
import { uuidv7 } from '../../../src/core/uuid.js';
import { BEFORE_ALL_AWAITED, findArrived, walkAwaited } from '../../../src/store/awaited-artifacts.js';
import { TENANT, TestShard } from './test-shard.js';

it('a walk over awaited artifacts sees a part of them, and the next one goes on behind it', async () => {
  const shard = await TestShard.forTest();
  const now = Date.now();
  const artifacts = Array.from({ length: 5 }, () => uuidv7(now)).sort();
  const [, ready, , gone] = artifacts;
  await shard.pool.query(
    `INSERT INTO punctual.artifacts (id, tenant, sha256, size, runnable, state, created_at, created_by, expires_at, used_at)
     SELECT u.id, $2, 'a', 1, true, CASE WHEN u.id = $3 THEN 'ready' ELSE 'pending' END, 0, 'test', 1, 0
     FROM unnest($1::uuid[]) u(id) WHERE u.id <> $4`,
    [artifacts, TENANT, ready, gone],
  );
  const jobs = new Map<string, string>();
  for (const artifact of [...artifacts, ready!]) {
    const job = await shard.submit({}, { admitAt: now + 3_600_000 });
    jobs.set(job, artifact);
    await shard.pool.query('UPDATE punctual.later SET blocked = true, artifact = $2 WHERE id = $1', [
      job,
      artifact,
    ]);
  }
  const first = await walkAwaited(shard.pool, BEFORE_ALL_AWAITED, 3);
  expect(first).toEqual({ arrived: [ready], after: artifacts[2] });
  const second = await walkAwaited(shard.pool, first.after!, 3);
  expect(second).toEqual({ arrived: [gone], after: null });
  const found = await findArrived(shard.pool, 10, [], artifacts);
  expect(found.map(({ id, isReady }) => [jobs.get(id), isReady]).sort()).toEqual(
    [
      [ready, true],
      [ready, true],
      [gone, false],
    ].sort(),
  );
});
