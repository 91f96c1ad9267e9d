import { expect, it } from 'vitest';
import { expectedEnds, ModelShard, type ModelStep } from '../../test/workflow-model.js';
import { RUN_IFS } from '../core/workflow.js';
import { planPortion, released } from './plan-portion.js';

/** A small generator of numbers, so that a case can be repeated by its seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

type Random = (below: number) => number;

function randomSteps(random: Random, prefix: string, count: number, before: readonly string[]): ModelStep[] {
  const steps: ModelStep[] = [];
  for (let i = 0; i < count; i++) {
    const known = [...before, ...steps.map(({ id }) => id)];
    const parents = known.filter(() => random(3) === 0);
    const runIf = RUN_IFS[random(parents.length > 0 ? RUN_IFS.length : 2)]!;
    steps.push({ id: `${prefix}${String(i).padStart(2, '0')}`, parents, runIf, fails: random(3) === 0 });
  }
  return steps;
}

/** Counts some of the ends, in any order, in a portion of any size. */
function countSome(shard: ModelShard, random: Random): void {
  const ends = [...shard.outbox.values()].sort(() => random(3) - 1).slice(0, 1 + random(4));
  const limit = 1 + random(5);
  const { ready, taken: _, ...plan } = planPortion(ends, shard.read(ends, limit), limit);
  expect(shard.apply({ ...plan, released: ready.map((step) => released(step, 0)) })).toBe(true);
}

/** The steps behind the given ones, and these. */
function below(graph: readonly ModelStep[], from: readonly string[]): Set<string> {
  const found = new Set(from);
  for (let size = -1; size < found.size; ) {
    size = found.size;
    for (const { id, parents } of graph) if (parents.some((parent) => found.has(parent))) found.add(id);
  }
  return found;
}

/** A running step adds steps; those of its children that are not decided join them, as the model's graph then says, too. */
function addSome(shard: ModelShard, random: Random, adder: string, prefix: string): void {
  const isJoined = random(3) > 0;
  // Drained first, as the executor does: an end that is counted later must not find a parent counted here.
  while (shard.outbox.size > 0) countSome(shard, random);
  const joiners = isJoined ? shard.undecidedChildren(adder) : [];
  const behind = below(shard.graph, joiners);
  const others = shard.graph.map(({ id }) => id).filter((id) => !behind.has(id) && random(2) === 0);
  shard.add(randomSteps(random, prefix, 1 + random(3), others), joiners);
}

it('random graphs to which running steps add others end as if all had been there from the beginning', () => {
  let added = 0;
  for (let seed = 1; seed <= 5_000; seed++) {
    const random = randomFrom(seed);
    const shard = new ModelShard(randomSteps(random, '', 1 + random(8), []), 'continue');
    for (let additions = 0; shard.live.size > 0 || shard.outbox.size > 0; ) {
      const live = [...shard.live];
      const what = random(3);
      if (live.length > 0 && what === 0 && additions < 5) {
        addSome(shard, random, live[random(live.length)]!, `${String.fromCharCode(97 + additions)}`);
        additions += 1;
        added += 1;
      } else if (live.length > 0 && (shard.outbox.size === 0 || what === 1)) {
        const id = live[random(live.length)]!;
        const { parents } = shard.graph.find((step) => step.id === id)!;
        for (const parent of parents) expect(shard.ends.has(parent), `seed ${seed}`).toBe(true);
        shard.finish(id);
      } else if (shard.outbox.size > 0) countSome(shard, random);
    }
    const expected = [...expectedEnds(shard.inOrder())].sort();
    expect(Object.fromEntries([...shard.ends].sort()), `seed ${seed}`).toEqual(Object.fromEntries(expected));
    expect(new Set(shard.ran).size).toBe(shard.ran.length);
    expect(shard.over, `seed ${seed}`).toHaveLength(1);
  }
  expect(added).toBeGreaterThan(2_000);
}, 60_000);
