import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { AnnouncedArtifact } from '../../../src/core/artifact.js';
import type { Batch } from '../../../src/core/batch.js';
import type { Job } from '../../../src/core/job.js';
import type { ClusterView } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { type Answer, ApiUser, type Ask } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';
import { announce, send } from './artifact-for-tests.js';

const KILLS = 3;

/** Somebody who talks to whichever node is given. */
class User extends ApiUser {
  url = '';

  constructor(private readonly key: string) {
    super();
  }

  override async ask<T>(method: string, path: string, { body }: Ask = {}): Promise<Answer<T>> {
    const answer = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      headers: answer.headers,
      body: (text === '' ? undefined : JSON.parse(text)) as T,
    };
  }
}

it('jobs, steps and batches that wait for artifacts lose nothing when leaders are killed', async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const { key } = await createOperatorKey(database.url, 'tester');
  const start = async () => {
    const environment = {
      PUNCTUAL_DATABASE_URL: database.url,
      PUNCTUAL_ARTIFACT_STORE: join(folder, 'artifacts'),
      PUNCTUAL_LEASE_TTL: '1s',
    };
    const server = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await server.kill('SIGKILL')));
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    return { server, url: url! };
  };
  const user = new User(key);
  let leader = await start();
  user.url = leader.url;
  const hasLeader = async () =>
    (await user.get<ClusterView>('GET', '/v1/cluster')).shards[0]!.leader !== null;
  await until(hasLeader);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const follower = await start();
    const elf = Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);
    const version = String(kill);
    const target = { type: 'exec', artifact: `packer@${version}` };
    user.url = follower.url;
    const { body } = await announce(user, elf, { name: 'packer', version });
    const { ids } = await user.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
      body: { jobs: Array.from({ length: 20 }, () => ({ target })) },
    });
    const { jobs } = await user.get<Workflow>('POST', '/v1/workflows', {
      body: { name: 'w', jobs: { a: { target }, b: { target, after: ['a'] } } },
    });
    const batch = await user.get<Batch>('POST', '/v1/batches', { body: { jobs: [{ target }, { target }] } });
    const all = [...ids, jobs.a!.id, jobs.b!.id, ...batch.jobs.map(({ id }) => id)];
    // The upload ends while the leader dies, sometimes before, sometimes after.
    const [sent] = await Promise.all([
      send((body as AnnouncedArtifact).uploadUrl!, elf),
      leader.server.kill('SIGKILL'),
    ]);
    expect(sent.status, JSON.stringify(sent.body)).toBe(200);
    leader = follower;
    await until(hasLeader);
    const worker = await ProtocolWorker.register(user, { targets: ['exec'], slots: 50 });
    const ran: string[] = [];
    while (ran.length < all.length) {
      const claimed = await worker.claim(50, '10s');
      if (claimed.length === 0) throw new Error(`only ${ran.length} of ${all.length} jobs came`);
      for (const each of claimed) {
        ran.push(each.jobId);
        await worker.succeed(each);
      }
    }
    expect(ran.sort()).toEqual(all.sort());
    const ends = await Promise.all(all.map((id) => user.get<Job>('GET', `/v1/jobs/${id}`)));
    expect(new Set(ends.map(({ state, attempt }) => `${state} ${attempt}`))).toEqual(
      new Set(['succeeded 1']),
    );
  }
}, 120_000);
