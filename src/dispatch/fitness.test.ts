import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { Ability } from './ability.js';
import type { Directory, NeedsInfo } from './directory.js';
import { Fitness } from './fitness.js';
import { NeedsIndex } from './needs-index.js';
import { WorkerSession } from './worker-session.js';

const name = fc.constantFrom('a', 'b', 'c');
const labels = fc.dictionary(name, fc.constantFrom('1', '2'), { maxKeys: 3 });
const needsOf = fc.record({
  tenant: fc.constantFrom('acme', 'rival'),
  target: fc.constantFrom('handler', 'http'),
  handler: name,
  labels,
});
const worker = fc.record({
  tenant: fc.constantFrom(null, 'acme', 'rival'),
  targets: fc.subarray(['handler', 'http'] as const),
  tasks: fc.subarray(['a', 'b', 'c']),
  labels,
});
type Worker = typeof worker extends fc.Arbitrary<infer W> ? W : never;

function toNeeds(each: Omit<NeedsInfo, 'id'>, id: number): NeedsInfo {
  // Of calls, the origin stands in place of the handler.
  return { ...each, id, handler: each.target === 'handler' ? each.handler : `https://${each.handler}` };
}

function toSession({ tenant, ...rest }: Worker, id: number): WorkerSession {
  const registration = { name: 'w', queues: ['*'], slots: 1, shared: tenant === null, ...rest };
  return new WorkerSession(`${id}`, tenant ?? 'owner', JSON.stringify(registration), 0, new TestClock());
}

function fitnessOver(all: readonly NeedsInfo[]): Fitness {
  return new Fitness({ needsOf: (id: number) => all[id] } as unknown as Directory);
}

describe('fitness', () => {
  it('says of every worker and all needs what comparing them would say, whoever came first', () => {
    fc.assert(
      fc.property(fc.array(needsOf), fc.array(worker), fc.array(fc.nat(20)), (needs, workers, order) => {
        const all = needs.map(toNeeds);
        const fitness = fitnessOver(all);
        const sessions = workers.map(toSession);
        const present = new Set<WorkerSession>();
        const served = (id: number) => [...present].some((each) => each.ability.hasAllOf(all[id]!));
        // Asked about before, between and after workers come and go.
        for (const [step, session] of sessions.entries()) {
          if (all.length > 0) fitness.isServed((order[step] ?? 0) % all.length);
          const before = all.map((_, id) => served(id));
          present.add(session);
          for (const id of fitness.join(session)) expect([before[id], served(id)]).toEqual([false, true]);
        }
        for (const session of sessions) {
          for (const [id, each] of all.entries()) {
            expect(fitness.isServed(id)).toBe(served(id));
            if (present.has(session)) expect(fitness.fits(session, id)).toBe(session.ability.hasAllOf(each));
          }
          const before = all.map((_, id) => served(id));
          present.delete(session);
          const turned = fitness.leave(session);
          expect([...turned].sort()).toEqual(
            all
              .map((_, id) => id)
              .filter((id) => before[id] && !served(id))
              .sort(),
          );
        }
      }),
    );
  });

  it('looks again at needs that were forgotten', () => {
    const all = [toNeeds({ tenant: 'acme', target: 'handler', handler: 'a', labels: { gpu: 'yes' } }, 0)];
    const fitness = fitnessOver(all);
    const session = toSession(
      { tenant: 'acme', targets: ['handler'], tasks: ['a'], labels: { gpu: 'yes' } } as never,
      1,
    );
    fitness.join(session);
    expect(fitness.isServed(0)).toBe(true);
    fitness.forget(0);
    expect(fitness.leave(session)).toEqual(new Set());
    expect(fitness.isServed(0)).toBe(false);
  });
});

describe('a worker that comes', () => {
  it('is not compared with label sets that it lacks, however they overlap with its own', () => {
    const index = new NeedsIndex();
    for (let n = 0; n < 1_000; n++) {
      index.add(
        toNeeds({ tenant: 'acme', target: 'handler', handler: 'a', labels: { region: 'eu', n: `${n}` } }, n),
      );
    }
    const ability = new Ability('acme', { targets: ['handler'], tasks: ['a'], labels: { region: 'eu' } });
    expect([...index.candidates(ability)].length).toBeLessThanOrEqual(2);
  });
});
