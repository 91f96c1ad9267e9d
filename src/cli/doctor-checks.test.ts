import { describe, expect, it } from 'vitest';
import type { Job } from '../core/job.js';
import { VERSION } from '../core/version.js';
import type { ClusterView, Why, WorkerView } from '../core/wire.js';
import { checkClock, checkCluster, checkNodeVersion, checkWaiting, checkWorkers } from './doctor-checks.js';

const cluster: ClusterView = {
  shards: [{ id: 0, leader: 'node-a', epoch: 3, expiresAt: '', terms: 3 }],
  nodes: [{ id: 'node-a', url: 'http://127.0.0.1:1', leads: [0], lastSeen: '', version: VERSION }],
  paused: false,
};

describe('doctor', () => {
  it('wants a Node.js that is new enough', () => {
    expect(checkNodeVersion('20.19.0').status).toBe('ok');
    expect(checkNodeVersion('20.18.3')).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('20.19'),
    });
  });

  it('finds a shard without a leader, paused dispatch and other versions', () => {
    expect(checkCluster(cluster).map((check) => check.status)).toEqual(['ok', 'ok', 'ok']);
    const ill: ClusterView = {
      shards: [{ ...cluster.shards[0]!, leader: null }],
      nodes: [{ ...cluster.nodes[0]!, version: '9.9.9' }],
      paused: true,
    };
    expect(checkCluster(ill).map((check) => check.status)).toEqual(['fail', 'warn', 'warn']);
    for (const check of checkCluster(ill)) expect(check.advice).toBeTruthy();
  });

  it('counts only workers that are alive', () => {
    const worker = { state: 'alive', slots: 10 } as WorkerView;
    expect(checkWorkers([worker, { ...worker, state: 'dead' }]).detail).toBe('1 alive with 10 slots');
    expect(checkWorkers([{ ...worker, state: 'dead' }]).status).toBe('warn');
  });

  it('finds jobs that no worker can run, and says of which kind they are', () => {
    const job = { id: 'j1', task: 'mail', queue: 'red', target: { type: 'handler' } } as unknown as Job;
    const because = (gate: Why['gate']) => ({ gate }) as Why;
    expect(checkWaiting([]).status).toBe('ok');
    expect(checkWaiting([{ job, why: because('due-time') }]).status).toBe('ok');
    const found = checkWaiting([
      { job, why: because('no-fitting-worker') },
      { job: { ...job, id: 'j2', queue: 'blue' }, why: because('no-free-slot') },
      { job: { ...job, id: 'j3', task: 'bill' }, why: because('no-fitting-worker') },
    ]);
    expect(found).toMatchObject({
      status: 'warn',
      detail: 'no worker can run task mail in queue red; task bill in queue red',
      advice: expect.stringContaining('punctual job why j1'),
    });
  });

  it('tells which clock is ahead', () => {
    expect(checkClock(900).status).toBe('ok');
    expect(checkClock(60_000).detail).toBe('this machine is 1m behind the node');
    expect(checkClock(-60_000).detail).toBe('this machine is 1m ahead of the node');
  });
});
