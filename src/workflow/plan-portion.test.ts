import { describe, expect, it } from 'vitest';
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

function randomGraph(random: (below: number) => number): ModelStep[] {
  const size = 1 + random(12);
  return Array.from({ length: size }, (_, i) => ({
    id: String(i).padStart(2, '0'),
    parents: Array.from({ length: i }, (_, parent) => String(parent).padStart(2, '0')).filter(
      () => random(3) === 0,
    ),
    runIf: RUN_IFS[random(RUN_IFS.length)]!,
    fails: random(3) === 0,
  }));
}

/** Counts some of the ends, in any order, in a portion of any size. */
function countSome(shard: ModelShard, random: (below: number) => number): void {
  const ends = [...shard.outbox.values()].sort(() => random(3) - 1).slice(0, 1 + random(4));
  const limit = 1 + random(5);
  const { ready, taken: _, ...plan } = planPortion(ends, shard.read(ends, limit), limit);
  const portion = { ...plan, released: ready.map((step) => released(step, 0)) };
  expect(shard.apply(portion)).toBe(true);
  // An end that is counted cannot be counted again.
  if (plan.counted.length > 0) expect(shard.apply(portion)).toBe(false);
}

describe('random graphs with random failures', () => {
  it('end as a simple model says, each step once and behind its parents, in whatever portions', () => {
    for (let seed = 1; seed <= 10_000; seed++) {
      const random = randomFrom(seed);
      const graph = randomGraph(random);
      const shard = new ModelShard(graph, 'continue');
      while (shard.live.size > 0 || shard.outbox.size > 0) {
        const live = [...shard.live];
        if (live.length > 0 && (shard.outbox.size === 0 || random(2) === 0)) {
          const id = live[random(live.length)]!;
          const { parents } = graph.find((step) => step.id === id)!;
          for (const parent of parents) expect(shard.ends.has(parent), `seed ${seed}`).toBe(true);
          shard.finish(id);
        } else countSome(shard, random);
      }
      expect(Object.fromEntries([...shard.ends].sort()), `seed ${seed}`).toEqual(
        Object.fromEntries([...expectedEnds(graph)].sort()),
      );
      expect(new Set(shard.ran).size).toBe(shard.ran.length);
      const hasFailed = [...shard.ends.values()].includes('failed');
      expect(shard.over, `seed ${seed}`).toEqual([hasFailed ? 'failed' : 'succeeded']);
    }
  }, 60_000);

  it('end once under `stop`, when blocked steps end by themselves, too', () => {
    for (let seed = 1; seed <= 5_000; seed++) {
      const random = randomFrom(seed);
      const graph = randomGraph(random);
      const shard = new ModelShard(graph, 'stop');
      while (shard.live.size > 0 || shard.outbox.size > 0) {
        const [live, blocked] = [[...shard.live], [...shard.blocked]];
        const what = random(4);
        if (what === 0 && blocked.length > 0) shard.endBlocked(blocked[random(blocked.length)]!, 'cancelled');
        else if (live.length > 0 && (shard.outbox.size === 0 || what === 1))
          shard.finish(live[random(live.length)]!);
        else if (shard.outbox.size > 0) countSome(shard, random);
        // What a sweep does when the workflow stops.
        if (shard.stopping !== null) for (const id of [...shard.blocked]) shard.endBlocked(id, 'skipped');
      }
      expect(shard.ends.size, `seed ${seed}`).toBe(graph.length);
      expect(shard.over, `seed ${seed}`).toHaveLength(1);
    }
  }, 60_000);
});

describe('random graphs whose failed steps are retried while others run', () => {
  it('never let a step run before its parents have ended, and end with no failure left', () => {
    for (let seed = 1; seed <= 10_000; seed++) {
      const random = randomFrom(seed);
      const graph = randomGraph(random);
      const shard = new ModelShard(graph, 'continue');
      const stays = new Set<string>();
      for (;;) {
        const live = [...shard.live];
        const failed = [...shard.ends].filter(([, state]) => state === 'failed').map(([id]) => id);
        const isQuiet = live.length === 0 && shard.outbox.size === 0;
        if (isQuiet && failed.length === 0) break;
        if (failed.length > 0 && (isQuiet || random(4) === 0)) {
          // Drained first: what an uncounted end would do to new counters is the mistake that this is about.
          while (shard.outbox.size > 0) countSome(shard, random);
          for (const id of shard.live) stays.add(id);
          shard.reopen(new Set(failed.filter((id) => shard.ends.get(id) === 'failed')));
        } else if (live.length > 0 && (shard.outbox.size === 0 || random(2) === 0)) {
          const id = live[random(live.length)]!;
          const { parents } = graph.find((step) => step.id === id)!;
          // A step that had been released when its parent was retried stays, and may end before it.
          if (!stays.has(id)) {
            const open = parents.filter((parent) => !shard.ends.has(parent));
            expect(open, `seed ${seed}`).toEqual([]);
          }
          shard.finish(id);
        } else countSome(shard, random);
      }
      expect(shard.ends.size, `seed ${seed}`).toBe(graph.length);
      expect(shard.blocked.size, `seed ${seed}`).toBe(0);
      expect(shard.over.at(-1), `seed ${seed}`).toBe('succeeded');
    }
  }, 60_000);
});

it('a step that was blocked for long is due from its release on, and later by its delay', () => {
  const step = { id: 'a', runIf: 'all-succeeded', parents: 1, parentsLeft: 0, ok: 1, bad: 0 } as const;
  const rest = { released: false, outcome: null, wait: null, refers: false } as const;
  expect(released({ ...step, ...rest, delayMs: 0 }, 5_000).runAt).toBe(5_000);
  expect(released({ ...step, ...rest, delayMs: 250 }, 5_000).runAt).toBe(5_250);
});
