import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { testCertificate } from '../../test/test-certificate.js';
import type { Job } from '../core/job.js';
import { VERSION } from '../core/version.js';
import type { ClusterView, UnservedView, Why, WorkerView } from '../core/wire.js';
import {
  checkClock,
  checkCluster,
  checkNode,
  checkNodeKeys,
  checkNodeVersion,
  checkWaiting,
  checkWorkers,
  examples,
} from './doctor.js';

const cluster: ClusterView = {
  ok: true,
  shards: [{ id: 0, leader: 'node-a', epoch: 3, expiresAt: '', terms: 3 }],
  nodes: [
    { id: 'node-a', url: 'http://127.0.0.1:1', state: 'alive', leads: [0], lastSeen: '', version: VERSION },
  ],
  paused: false,
};

const job = {
  ...{
    id: 'j1',
    task: 'mail',
    queue: 'red',
    target: { type: 'handler' },
    requires: {},
    hold: false,
    runAt: '',
  },
} as unknown as Job;

describe('the master keys of nodes', () => {
  const keys = (known: readonly string[], stored: readonly string[] = []) => ({
    current: known[0] ?? null,
    known,
    stored: stored.map((keyId) => ({ keyId, isKnown: known.includes(keyId), values: 1 })),
  });
  const check = (...nodes: readonly ReturnType<typeof keys>[]) =>
    checkNodeKeys(nodes.map((each, i) => ({ url: `http://node-${i}`, keys: each })));

  it('are well when all nodes have the same one and it opens everything, or when there is nothing', () => {
    expect(check(keys(['a'], ['a']), keys(['a'], ['a']))).toMatchObject({ status: 'ok' });
    expect(check(keys(['a']))).toMatchObject({ status: 'ok' });
    expect(check(keys([]))).toMatchObject({ status: 'ok' });
  });

  it('are missing where secrets need them', () => {
    const none = check(keys(['a'], ['a']), keys([], ['a']));
    expect(none).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('http://node-1 has no master key'),
    });
    expect(none.advice).toContain('PUNCTUAL_SECRET_KEY');
    const other = check(keys(['b'], ['a', 'b']));
    expect(other).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('lacks the master key a'),
    });
  });

  it('differ during a change, and wait for rekey at its end', () => {
    const differ = check(keys(['a', 'b'], ['a']), keys(['b', 'a'], ['a']));
    expect(differ).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('different master keys: a, b'),
    });
    const wait = check(keys(['b', 'a'], ['a', 'b']));
    expect(wait).toMatchObject({ status: 'warn', advice: expect.stringContaining('secret rekey') });
  });
});

describe('doctor', () => {
  it('wants a Node.js that is new enough', () => {
    expect(checkNodeVersion('20.19.0').status).toBe('ok');
    expect(checkNodeVersion('20.18.3')).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('20.19'),
    });
  });

  it('names the variable for a private authority if that is not trusted', async () => {
    const server = createServer(testCertificate('node')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await checkNode(url, Date.now)).toMatchObject([
      { status: 'fail', advice: expect.stringContaining('NODE_EXTRA_CA_CERTS') },
    ]);
  });

  it('finds a shard without a leader, paused dispatch, dead nodes and other versions', () => {
    expect(checkCluster(cluster).map((check) => check.status)).toEqual(['ok', 'ok', 'ok', 'ok']);
    const ill: ClusterView = {
      ok: false,
      shards: [{ ...cluster.shards[0]!, leader: null }],
      nodes: [
        { ...cluster.nodes[0]!, version: '9.9.9' },
        { ...cluster.nodes[0]!, id: 'node-b', state: 'dead', version: '8.8.8' },
      ],
      paused: true,
    };
    expect(checkCluster(ill).map((check) => check.status)).toEqual(['fail', 'warn', 'warn', 'warn']);
    expect(checkCluster(ill).map((check) => check.detail)).toEqual([
      ...['none', 'paused', 'dead: node-b', `nodes run 9.9.9, this program is ${VERSION}`],
    ]);
    for (const check of checkCluster(ill)) expect(check.advice).toBeTruthy();
  });

  it('tells a tenant whether the cluster is well', () => {
    const shown: ClusterView = { ...cluster, shards: [], nodes: [] };
    expect(checkCluster(shown).map((check) => check.status)).toEqual(['ok', 'ok']);
    expect(checkCluster({ ...shown, ok: false }).map((check) => check.status)).toEqual(['ok', 'fail']);
  });

  it('counts only workers that are alive', () => {
    const worker = { state: 'alive', slots: 10 } as WorkerView;
    expect(checkWorkers([worker, { ...worker, state: 'dead' }]).detail).toBe('1 alive with 10 slots');
    expect(checkWorkers([{ ...worker, state: 'dead' }]).status).toBe('warn');
  });

  it('finds jobs that no worker can run, and says of which kind they are', () => {
    const because = (gate: Why['gate'], figures = {}) => ({ gate, figures }) as Why;
    const unserved = (task: string | null, queue: string) =>
      ({ ...{ task, queue, target: task === null ? 'http' : 'handler' }, requires: {} }) as UnservedView;
    expect(checkWaiting([], []).status).toBe('ok');
    expect(checkWaiting([{ job, why: because('due-time') }], []).status).toBe('ok');
    const newest = [
      { job, why: because('no-fitting-worker') },
      { job: { ...job, id: 'j2', queue: 'blue' }, why: because('no-free-slot') },
      { job: { ...job, id: 'j3', task: 'bill', requires: { gpu: 'a' } }, why: because('no-fitting-worker') },
    ];
    const found = checkWaiting(newest, [unserved('mail', 'red'), unserved(null, 'calls')]);
    const calls = 'jobs with a target of type http in queue calls';
    expect(found).toMatchObject({
      status: 'warn',
      detail: `no worker can run task mail in queue red; task bill in queue red with gpu=a; ${calls}`,
      advice: expect.stringContaining('punctual job why j1'),
    });
    expect(checkWaiting([], [unserved('mail', 'red')])).toMatchObject({
      detail: 'no worker can run task mail in queue red',
      advice: 'Start a worker that has all of that.',
    });
    // Advice can be followed as it stands, also for another tenant than the default one.
    const why = because('no-fitting-worker', { workersOfOtherTenants: 3 });
    const ofAcme = { job: { ...job, tenant: 'acme' }, why };
    expect(checkWaiting([ofAcme], [], ' --tenant acme').advice).toBe(
      'Start a worker that has all of that, with --tenant acme; `punctual job why j1 --tenant acme` says what is missing.' +
        ' Workers of other tenants could run job j1: one with --shared or --tenant acme would take it.',
    );
    expect(checkWorkers([], ' --tenant acme').advice).toContain('--module FILE --tenant acme`');
  });

  it('takes the job of each kind that is due first and is not held for its example', () => {
    const at = (id: string, runAt: string, more: object = {}) => ({ ...job, id, runAt, ...more });
    const jobs = [
      at('tomorrow', '2026-01-02T00:00:00.000Z'),
      at('today', '2026-01-01T00:00:00.000Z'),
      at('held', '2025-01-01T00:00:00.000Z', { hold: true }),
      at('call', '2026-01-03T00:00:00.000Z', { task: null, target: { type: 'http' } }),
    ];
    expect(examples(jobs).map(({ id }) => id)).toEqual(['today', 'call']);
    expect(examples([...jobs].reverse()).map(({ id }) => id)).toEqual(['call', 'today']);
  });

  it('tells which clock is ahead', () => {
    expect(checkClock(900).status).toBe('ok');
    expect(checkClock(60_000).detail).toBe('this machine is 1m behind the node');
    expect(checkClock(-60_000).detail).toBe('this machine is 1m ahead of the node');
  });
});
