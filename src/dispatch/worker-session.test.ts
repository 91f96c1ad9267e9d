import { describe, expect, it } from 'vitest';
import { TimerClock } from '../core/clock.js';
import type { WorkerRegistration } from '../core/wire.js';
import type { NeedsInfo, QueueInfo } from './directory.js';
import type { Running } from './running.js';
import { WorkerSession } from './worker-session.js';

function session(change: Partial<WorkerRegistration> = {}): WorkerSession {
  const registration: WorkerRegistration = {
    name: 'worker',
    queues: ['default'],
    slots: 2,
    targets: ['handler'],
    tasks: ['mail'],
    labels: { region: 'eu', gpu: 'yes' },
    ...change,
  };
  return new WorkerSession('w1', 'acme', JSON.stringify(registration), 0, new TimerClock(() => 0));
}

let nextNeeds = 0;
function needs(change: Partial<NeedsInfo> = {}): NeedsInfo {
  nextNeeds += 1;
  return { id: nextNeeds, tenant: 'acme', target: 'handler', handler: 'mail', labels: {}, ...change };
}

function queue(change: Partial<QueueInfo>): QueueInfo {
  return { id: 1, tenant: 'acme', name: 'default', paused: false, created_at: 0, ...change } as QueueInfo;
}

describe('a worker session', () => {
  it('serves its queues of its own tenant', () => {
    expect(session().serves(queue({}))).toBe(true);
    expect(session().serves(queue({ name: 'other' }))).toBe(false);
    expect(session().serves(queue({ tenant: 'rival' }))).toBe(false);
    expect(session({ queues: ['a', 'b'] }).serves(queue({ name: 'b' }))).toBe(true);
  });

  it.each<[string, Partial<NeedsInfo>, boolean]>([
    ['its own handler', {}, true],
    ['a label it has', { labels: { region: 'eu' } }, true],
    ['all its labels', { labels: { region: 'eu', gpu: 'yes' } }, true],
    ['a handler it lacks', { handler: 'bill' }, false],
    ['a target it lacks', { target: 'http', handler: '' }, false],
    ['a label of another value', { labels: { region: 'us' } }, false],
    ['a label it lacks', { labels: { region: 'eu', disk: 'fast' } }, false],
    ['a label that every object seems to have', { labels: { constructor: 'x' } }, false],
    ['another tenant', { tenant: 'rival' }, false],
  ])('fits %s or not', (_what, change, fits) => {
    const worker = session();
    const wanted = needs(change);
    expect(worker.ability.hasAllOf(wanted)).toBe(fits);
  });

  it('needs no handler for targets other than handlers', () => {
    const worker = session({ targets: ['http', 'exec'], tasks: [] });
    expect(worker.ability.hasAllOf(needs({ target: 'http', handler: '' }))).toBe(true);
    expect(worker.ability.hasAllOf(needs({ target: 'exec', handler: '' }))).toBe(true);
    expect(worker.ability.hasAllOf(needs())).toBe(false);
  });

  it('has free slots, and never fewer than none', () => {
    const worker = session();
    expect(worker.freeSlots).toBe(2);
    for (let i = 0; i < 3; i++) worker.running.add({} as Running);
    expect(worker.freeSlots).toBe(0);
  });
});
