import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnnouncedArtifact } from '../../../src/core/artifact.js';
import type { Batch } from '../../../src/core/batch.js';
import type { Job } from '../../../src/core/job.js';
import type { Why } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { type ApiUser, nodeForTest, TestNode, TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { TestClock } from '../../test-clock.js';
import { announce, push, send } from './artifact-for-tests.js';

/** Two nodes with one store; each test has a tenant of its own. */
let database: TestDatabase;
let node: TestNode;
let follower: TestNode;

beforeAll(async () => {
  database = await createTestDatabase();
  node = await TestNode.start({ database });
  await node.node.context.shards[0].leader();
  follower = await TestNode.start({ database });
});
afterAll(async () => {
  await follower.stop();
  await node.stop();
  await database.drop();
});

const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);
const exec = (artifact: string, fields: object = {}) => ({ type: 'exec', artifact, ...fields });
const worker = (user: ApiUser) => ProtocolWorker.register(user, { targets: ['exec', 'handler'] });
const why = (user: ApiUser, id: string) => user.get<Why>('GET', `/v1/jobs/${id}/why`);

/** A version that is announced and not uploaded. */
async function announced(
  user: ApiUser,
  name = 'packer',
  version = '1.0',
): Promise<{ readonly artifact: AnnouncedArtifact; upload(): Promise<void> }> {
  const elf = newElf();
  const { body: artifact } = await announce(user, elf, { name, version });
  const upload = async () => {
    const { status, body } = await send(artifact.uploadUrl!, elf);
    expect(status, JSON.stringify(body)).toBe(200);
  };
  return { artifact, upload };
}

const artifactOf = ({ target }: Pick<Job, 'target'>) => (target as { artifact?: string }).artifact;

describe('what a target names', () => {
  it('is replaced by the id of the newest version that is there, and stays that', async () => {
    const user = node.newTenant();
    const first = await push(user, newElf(), { name: 'packer', version: '1.0' });
    const job = await user.submit({ target: exec('packer'), delay: '1h' });
    expect(artifactOf(job)).toBe(first.id);
    const second = await push(user, newElf(), { name: 'packer', version: '0.9' });
    await announced(user, 'packer', '2.0');
    expect(artifactOf(await user.job(job.id))).toBe(first.id);
    expect(artifactOf(await user.submit({ target: exec('packer'), delay: '1h' }))).toBe(second.id);
    expect(artifactOf(await user.submit({ target: exec('packer@1.0'), delay: '1h' }))).toBe(first.id);
    expect(artifactOf(await user.submit({ target: exec(second.id), delay: '1h' }))).toBe(second.id);
    await user.get('POST', '/v1/tasks', { body: { name: 'pack', target: exec('packer') } });
    expect(artifactOf(await user.submit({ task: 'pack', delay: '1h' }))).toBe(second.id);
  });

  it('is refused if it is not there, is of another tenant, or is not to be run', async () => {
    const [user, other] = [node.newTenant(), node.newTenant()];
    const foreign = await push(other, newElf(), { name: 'packer', version: '1.0' });
    await push(user, Buffer.from('data'), { name: 'data', version: '1', runnable: false });
    await announced(user, 'soon');
    const refused = async (artifact: string, path = '/v1/jobs', body?: object) =>
      (await user.ask('POST', path, { body: body ?? { target: exec(artifact) } })).body.code;
    expect(await refused('packer')).toBe('ARTIFACT_NOT_FOUND');
    expect(await refused('packer@1.0')).toBe('ARTIFACT_NOT_FOUND');
    expect(await refused(foreign.id)).toBe('ARTIFACT_NOT_FOUND');
    expect(await refused('no name!')).toBe('ARTIFACT_NOT_FOUND');
    // A name alone means a version that is there.
    expect(await refused('soon')).toBe('ARTIFACT_NOT_FOUND');
    expect(await refused('data')).toBe('ARTIFACT_NOT_RUNNABLE');
    const jobs = [{ target: exec('data') }, { target: exec('x') }];
    expect(await refused('', '/v1/jobs/bulk', { jobs })).toMatch(/^ARTIFACT_/);
    expect(await refused('', '/v1/batches', { jobs })).toMatch(/^ARTIFACT_/);
    const steps = { name: 'w', jobs: { a: { target: exec('x') } } };
    expect(await refused('', '/v1/workflows', steps)).toBe('ARTIFACT_NOT_FOUND');
    const schedule = { name: 's', target: exec('x'), every: '1h' };
    expect(await refused('', '/v1/schedules', schedule)).toBe('ARTIFACT_NOT_FOUND');
    expect((await user.get<{ data: unknown[] }>('GET', '/v1/jobs')).data).toEqual([]);
  });
});

describe('a job whose artifact is not uploaded yet', () => {
  it('is blocked, says why, and starts when the bytes have come, through whatever node', async () => {
    const user = node.newTenant();
    const { artifact, upload } = await announced(user);
    const { id, state } = await user.submit({ target: exec('packer@1.0') });
    expect(state).toBe('blocked');
    expect(await why(user, id)).toMatchObject({
      ...{ gate: 'artifact', state: 'blocked', figures: { artifact: artifact.id } },
      detail: expect.stringContaining(artifact.id),
    });
    const by = await worker(user);
    await by.claimNothing();
    await upload();
    const started = performance.now();
    const assignment = await by.claimOne();
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(assignment).toMatchObject({ jobId: id, target: { type: 'exec', artifact: artifact.id } });
    // That its artifact was late does not make it late.
    expect((await user.job(id)).lateBy).toBeLessThan(1_000);
  });

  it('is freed by an upload through a node that does not lead, and by one through the node that does', async () => {
    const user = node.newTenant();
    const elsewhere = new TestTenant(follower, user.tenant);
    for (const [submits, uploads] of [
      [user, follower],
      [elsewhere, node],
    ] as const) {
      const elf = newElf();
      const version = uploads.url.replaceAll(/\W/g, '-');
      const { body } = await announce(submits, elf, { name: 'tool', version });
      const { id } = await submits.submit({ target: exec(`tool@${version}`) });
      const by = await worker(user);
      expect((await send(body.uploadUrl!.replace(submits.test.url, uploads.url), elf)).status).toBe(200);
      const assignment = await by.claimOne();
      expect(assignment.jobId).toBe(id);
      await by.succeed(assignment);
    }
  });

  it('of a bulk, of a caller of SQL, and on hold is looked after like any other', async () => {
    const user = node.newTenant();
    const { artifact, upload } = await announced(user);
    const target = exec('packer@1.0');
    const { ids } = await user.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
      body: {
        jobs: [
          { target, payload: 1 },
          { target, payload: 2 },
          { target, hold: true },
        ],
      },
    });
    const {
      rows: [row],
    } = await withClient(node.database.url, (client) =>
      client.query<{ id: string }>('SELECT punctual.submit_job($1, $2) AS id', [
        user.tenant,
        JSON.stringify({ target }),
      ]),
    );
    const all = [...ids, row!.id];
    await expect
      .poll(async () => Promise.all(all.map(async (id) => (await user.job(id)).state)), { timeout: 5_000 })
      .toEqual(all.map(() => 'blocked'));
    expect(artifactOf(await user.job(row!.id))).toBe(artifact.id);
    const by = await worker(user);
    await upload();
    const started = new Set(
      [...(await by.claim(10)), ...(await by.claim(10, '1s'))].map(({ jobId }) => jobId),
    );
    for (let tries = 0; started.size < 3 && tries < 10; tries += 1)
      for (const { jobId } of await by.claim(10, '1s')) started.add(jobId);
    expect([...started].sort()).toEqual([ids[0], ids[1], row!.id].sort());
    expect(await why(user, ids[2]!)).toMatchObject({ gate: 'hold', state: 'pending' });
    await user.get('POST', `/v1/jobs/${ids[2]}/release`);
    expect((await by.claimOne()).jobId).toBe(ids[2]);
  });

  it('can be cancelled, and its artifact stays as long as it waits', async () => {
    const user = node.newTenant();
    const { artifact } = await announced(user);
    const { id } = await user.submit({ target: exec('packer@1.0') });
    const remove = () => user.ask('DELETE', `/v1/artifacts/${artifact.id}`);
    expect(await remove()).toMatchObject({ status: 409, body: { code: 'ARTIFACT_IN_USE' } });
    const { usedBy } = await user.get<{ usedBy: unknown }>('GET', `/v1/artifacts/${artifact.id}`);
    expect(usedBy).toEqual([{ kind: 'job', name: id }]);
    expect((await user.get<Job>('POST', `/v1/jobs/${id}/cancel`)).state).toBe('cancelled');
    expect((await remove()).status).toBe(204);
  });

  it('is freed by the next leader', async () => {
    const other = await createTestDatabase();
    try {
      const first = await TestNode.start({ database: other });
      await first.node.context.shards[0].leader();
      const second = await nodeForTest({ database: other });
      const { artifact } = await announced(second);
      const { id } = await second.submit({ target: exec('packer@1.0') });
      await first.stop();
      const elf = newElf();
      const { body } = await announce(second, elf, { name: 'packer', version: '1.0' });
      expect(body.id).toBe(artifact.id);
      const by = await worker(second);
      expect((await send(body.uploadUrl!, elf)).status).toBe(200);
      expect((await by.claimOne()).jobId).toBe(id);
    } finally {
      await other.drop().catch(() => undefined);
    }
  });
});

it('a call may have what no artifact has in its name', async () => {
  const user = node.newTenant();
  const body = { 'a\u0000': 'b\u0000', lone: '\ud800', artifact: 'c\u0000' };
  const target = { type: 'http', url: 'http://127.0.0.1:1/', body };
  const [soon, late] = [
    await user.submit({ target, hold: true }),
    await user.submit({ target, delay: '1h' }),
  ];
  for (const { id } of [soon, late]) expect((await user.job(id)).target).toMatchObject({ body });
  await user.get('POST', `/v1/jobs/${soon.id}/release`);
});

describe('what waits for too long', () => {
  it('fails, after the time of its target or the usual one', async () => {
    const clock = new TestClock();
    const test = await nodeForTest({ clock });
    await announced(test);
    const soon = await test.submit({ target: exec('packer@1.0', { artifactTimeout: '10m' }) });
    const usual = await test.submit({ target: exec('packer@1.0') });
    const later = await test.submit({ target: exec('packer@1.0'), delay: '2h' });
    clock.advance(11 * 60_000);
    expect(await test.ended(soon.id)).toMatchObject({
      ...{ state: 'failed', error: { code: 'ARTIFACT_MISSING' }, attempt: 0 },
    });
    expect((await test.job(usual.id)).state).toBe('blocked');
    clock.advance(50 * 60_000);
    expect((await test.ended(usual.id)).error).toMatchObject({ code: 'ARTIFACT_MISSING' });
    clock.advance(60 * 60_000);
    // The time counts from when the job is due.
    expect((await test.job(later.id)).state).toBe('blocked');
    clock.advance(70 * 60_000);
    expect((await test.ended(later.id)).error).toMatchObject({ code: 'ARTIFACT_MISSING' });
  });

  it('waits as long after a new time as it would have after the old one', async () => {
    const clock = new TestClock();
    const test = await nodeForTest({ clock });
    await announced(test);
    const { id } = await test.submit({ target: exec('packer@1.0') });
    const runAt = new Date(clock.now() + 2 * 3_600_000).toISOString();
    await test.get('PATCH', `/v1/jobs/${id}`, { body: { runAt } });
    clock.advance(90 * 60_000);
    const until = Date.parse(runAt) + 3_600_000;
    const { figures } = await why(test, id);
    expect(Date.parse(figures!.until as string)).toBeGreaterThanOrEqual(until - 1_000);
    expect((await test.job(id)).state).toBe('blocked');
    clock.advance(95 * 60_000);
    expect((await test.ended(id)).error).toMatchObject({ code: 'ARTIFACT_MISSING' });
  });
});

describe('graphs, batches and schedules', () => {
  it('a step waits for the steps before it and for its artifact, whichever comes last', async () => {
    const user = node.newTenant();
    const [one, two] = [await announced(user, 'one'), await announced(user, 'two')];
    const workflow = await user.get<Workflow>('POST', '/v1/workflows', {
      body: {
        name: 'w',
        jobs: {
          root: { target: exec('one@1.0') },
          before: { task: 'work' },
          child: { target: exec('two@1.0'), after: ['before'] },
        },
      },
    });
    const step = (name: string) => workflow.jobs[name]!.id;
    expect(await why(user, step('root'))).toMatchObject({ gate: 'artifact' });
    expect(await why(user, step('child'))).toMatchObject({ gate: 'parents' });
    const by = await worker(user);
    const before = await by.claimOne();
    expect(before.jobId).toBe(step('before'));
    await by.succeed(before);
    await expect.poll(async () => (await why(user, step('child'))).gate, { timeout: 5_000 }).toBe('artifact');
    await one.upload();
    const root = await by.claimOne();
    expect(root.jobId).toBe(step('root'));
    await by.succeed(root);
    await two.upload();
    const child = await by.claimOne();
    expect(child.jobId).toBe(step('child'));
    await by.succeed(child);
    await expect
      .poll(async () => (await user.get<Workflow>('GET', `/v1/workflows/${workflow.id}`)).state, {
        timeout: 5_000,
      })
      .toBe('succeeded');
  });

  it('a step whose artifact comes before its turn waits for its turn', async () => {
    const user = node.newTenant();
    const { upload } = await announced(user);
    const { jobs } = await user.get<Workflow>('POST', '/v1/workflows', {
      body: {
        name: 'w',
        jobs: { first: { task: 'work' }, second: { target: exec('packer@1.0'), after: ['first'] } },
      },
    });
    await upload();
    const by = await worker(user);
    const first = await by.claimOne();
    expect(first.jobId).toBe(jobs.first!.id);
    await by.claimNothing();
    expect(await why(user, jobs.second!.id)).toMatchObject({ gate: 'parents' });
    await by.succeed(first);
    expect((await by.claimOne()).jobId).toBe(jobs.second!.id);
  });

  it('a step in a workflow on hold goes on with its release', async () => {
    const user = node.newTenant();
    const { upload } = await announced(user);
    const { id, jobs } = await user.get<Workflow>('POST', '/v1/workflows', {
      body: { name: 'w', jobs: { a: { target: exec('packer@1.0') } } },
    });
    await user.get('POST', `/v1/workflows/${id}/hold`);
    await upload();
    await expect.poll(async () => (await why(user, jobs.a!.id)).gate, { timeout: 5_000 }).toBe('hold');
    const by = await worker(user);
    await by.claimNothing();
    await user.get('POST', `/v1/workflows/${id}/release`);
    expect((await by.claimOne()).jobId).toBe(jobs.a!.id);
  });

  it('a batch starts when all artifacts are there, and is broken when one never comes', async () => {
    const user = node.newTenant();
    const [one, two] = [await announced(user, 'one'), await announced(user, 'two')];
    const body = { jobs: [{ target: exec('one@1.0') }, { target: exec('two@1.0') }, { task: 'work' }] };
    const batch = await user.get<Batch>('POST', '/v1/batches', { body });
    const by = await worker(user);
    await one.upload();
    await by.claimNothing();
    expect(await user.get<Why>('GET', `/v1/batches/${batch.id}/why`)).toMatchObject({
      waitingFor: 'artifact',
    });
    await two.upload();
    const started = await by.claim(10);
    expect(started).toHaveLength(3);
    const lonely = await announced(user, 'never');
    const broken = await user.get<Batch>('POST', '/v1/batches', {
      body: { jobs: [{ target: exec('never@1.0', { artifactTimeout: '100ms' }) }, { task: 'work' }] },
    });
    expect(lonely.artifact.state).toBe('pending');
    await expect
      .poll(async () => (await user.get<Batch>('GET', `/v1/batches/${broken.id}`)).state, { timeout: 10_000 })
      .toBe('cancelled');
    const [first] = broken.jobs;
    expect((await user.job(first!.id)).error).toMatchObject({ code: 'ARTIFACT_MISSING' });
  });

  it('a schedule takes at each occurrence the version that is the newest then, and waits for one that is announced', async () => {
    const user = node.newTenant();
    const first = await push(user, newElf(), { name: 'packer', version: '1' });
    await user.get('POST', '/v1/schedules', {
      body: { name: 'newest', target: exec('packer'), every: '1d' },
    });
    const run = (name: string) => user.get<Job>('POST', `/v1/schedules/${name}/run`);
    expect(artifactOf(await run('newest'))).toBe(first.id);
    const second = await push(user, newElf(), { name: 'packer', version: '2' });
    expect(artifactOf(await run('newest'))).toBe(second.id);
    const { upload } = await announced(user, 'packer', '3');
    await user.get('POST', '/v1/schedules', {
      body: { name: 'exact', target: exec('packer@3'), every: '1d' },
    });
    const waiting = await run('exact');
    expect(waiting).toMatchObject({ state: 'blocked', schedule: 'exact' });
    const by = await worker(user);
    for (const each of await by.claim(2)) await by.succeed(each);
    await upload();
    for (;;) {
      const next = await by.claimOne();
      if (next.jobId === waiting.id) break;
      await by.succeed(next);
    }
    expect(
      (await user.get<{ usedBy: unknown[] }>('GET', `/v1/artifacts/${second.id}`)).usedBy,
    ).not.toContainEqual({
      ...{ kind: 'schedule', name: 'exact' },
    });
  });
});
