import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { turnsOf } from '../../../test/turns-of-the-loop.js';
import { JsonText } from '../json-reader.js';
import { checkGraph, type GraphStep } from './graph.js';
import { graphs, type RandomStep } from './graphs.fixture.js';

function json(value: unknown): JsonText {
  const text = JSON.stringify(value);
  return new JsonText(text, Buffer.byteLength(text));
}

/** All steps that a step waits for, found the long way. */
function ancestorsOf(jobs: Readonly<Record<string, GraphStep>>, name: string): Set<string> {
  const found = new Set<string>();
  const visit = (step: string) => {
    for (const parent of jobs[step]!.after ?? []) if (!found.has(parent)) visit(found.add(parent) && parent);
  };
  visit(name);
  return found;
}

/** The graph alone: a random step may have a `runIf` that never runs. */
function withoutRunIf(
  jobs: Readonly<Record<string, RandomStep>>,
): Record<string, { after: readonly string[] }> {
  return Object.fromEntries(Object.entries(jobs).map(([name, { after }]) => [name, { after }]));
}

const chain = (length: number, step: (i: number) => GraphStep = () => ({})) =>
  Object.fromEntries(
    Array.from({ length }, (_, i) => [`s${i}`, { after: i === 0 ? [] : [`s${i - 1}`], ...step(i) }]),
  );

describe('the check of a graph', () => {
  it('puts every step behind its parents, and names the same edges from both ends', async () => {
    await fc.assert(
      fc.asyncProperty(graphs(), async (random) => {
        const jobs = withoutRunIf(random);
        const { steps } = await checkGraph(jobs);
        expect(steps!.map(({ name }) => name).sort()).toEqual(Object.keys(jobs).sort());
        for (const [place, { name, parents, children }] of steps!.entries()) {
          expect(parents.every((parent) => parent < place)).toBe(true);
          expect(parents.map((parent) => steps![parent]!.name)).toEqual(jobs[name]!.after);
          for (const child of children) expect(steps![child]!.parents).toContain(place);
          for (const parent of parents) expect(steps![parent]!.children).toContain(place);
        }
      }),
    );
  });

  it('names a cycle that is one, whatever edges close it', async () => {
    await fc.assert(
      fc.asyncProperty(
        graphs(8),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 4 }),
        async (jobs, more) => {
          const names = Object.keys(jobs);
          const after = new Map(names.map((name) => [name, new Set(jobs[name]!.after)]));
          for (const [from, to] of more)
            after.get(names[from % names.length]!)!.add(names[to % names.length]!);
          const closed = Object.fromEntries(names.map((name) => [name, { after: [...after.get(name)!] }]));
          const isCyclic = names.some((name) => ancestorsOf(closed, name).has(name));
          const { errors } = await checkGraph(closed);
          expect(errors !== undefined).toBe(isCyclic);
          for (const { pointer, detail } of errors ?? []) {
            const cycle = detail.replace('steps wait for each other: ', '').split(' → ');
            expect(cycle.length).toBeGreaterThan(1);
            expect(cycle[0]).toBe(cycle.at(-1));
            for (const [i, step] of cycle.slice(1).entries()) expect(closed[step]!.after).toContain(cycle[i]);
            const [, , step, , place] = pointer.split('/');
            expect([step, closed[step!]!.after[Number(place)]]).toEqual([cycle[0], cycle.at(-2)]);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('takes references to ancestors and refuses all others', async () => {
    await fc.assert(
      fc.asyncProperty(
        graphs(8),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 6 }),
        async (graph, pairs) => {
          const names = Object.keys(graph);
          const wanted = new Map<string, string[]>(names.map((name) => [name, []]));
          for (const [from, to] of pairs)
            wanted.get(names[from % names.length]!)!.push(names[to % names.length]!);
          const jobs = Object.fromEntries(
            names.map((name) => {
              const payload = json(wanted.get(name)!.map((step) => ({ $from: `${step}.result` })));
              return [name, { after: graph[name]!.after, payload }];
            }),
          );
          const wrong = names.flatMap((name) => {
            const ancestors = ancestorsOf(graph, name);
            const theirs = new Set(wanted.get(name)!.filter((step) => !ancestors.has(step)));
            return [...theirs].map(
              (step) => `/jobs/${name}/payload/${wanted.get(name)!.indexOf(step)}/$from`,
            );
          });
          const { errors, steps } = await checkGraph(jobs);
          expect((errors ?? []).map(({ pointer }) => pointer).sort()).toEqual(wrong.sort());
          if (!steps) return;
          for (const { name, references } of steps)
            expect(references.map(({ step }) => step)).toEqual(wanted.get(name));
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each<[string, Record<string, GraphStep>, object[]]>([
    ['no step', {}, [{ pointer: '/jobs', detail: 'must have at least one step' }]],
    [
      'an unknown step',
      { a: { after: ['b', 'toString'] } },
      [
        { pointer: '/jobs/a/after/0', detail: 'there is no step "b"' },
        { pointer: '/jobs/a/after/1', detail: 'there is no step "toString"' },
      ],
    ],
    [
      'a parent twice',
      { a: {}, b: { after: ['a', 'a'] } },
      [{ pointer: '/jobs/b/after/1', detail: 'names "a" a second time' }],
    ],
    [
      'a step after itself',
      { a: { after: ['a'] } },
      [{ pointer: '/jobs/a/after/0', detail: 'steps wait for each other: a → a' }],
    ],
    [
      'two cycles and a step behind one of them',
      {
        a: { after: ['b'] },
        b: { after: ['a'] },
        c: { after: ['a'] },
        d: { after: ['e'] },
        e: { after: ['d'] },
      },
      [
        { pointer: '/jobs/a/after/0', detail: 'steps wait for each other: a → b → a' },
        { pointer: '/jobs/d/after/0', detail: 'steps wait for each other: d → e → d' },
      ],
    ],
    [
      'a first step that would never run',
      { a: { runIf: 'any-failed' }, b: { runIf: 'all-finished' } },
      [{ pointer: '/jobs/a/runIf', detail: '"any-failed" never runs without a step in "after"' }],
    ],
    [
      'a reference to a step that does not exist',
      { a: { payload: json({ x: { $from: 'b.result.y' } }) } },
      [{ pointer: '/jobs/a/payload/x/$from', detail: '"b.result.y" names a step that does not exist' }],
    ],
    [
      'a reference to a step that it does not wait for',
      { a: {}, b: { payload: json({ $from: 'a.result' }) } },
      [{ pointer: '/jobs/b/payload/$from', detail: '"a.result" is not among the steps that "b" waits for' }],
    ],
    [
      'a reference to itself',
      { a: { payload: json({ $from: 'a.result' }) } },
      [{ pointer: '/jobs/a/payload/$from', detail: '"a.result" is the step itself' }],
    ],
    [
      'a reference of the wrong form',
      { a: {}, b: { after: ['a'], payload: json([{ $from: 'a' }]) } },
      [
        {
          pointer: '/jobs/b/payload/0/$from',
          detail: expect.stringContaining('must be the name of a step') as unknown as string,
        },
      ],
    ],
  ])('refuses %s', async (_, jobs, errors) => {
    expect((await checkGraph(jobs)).errors).toEqual(errors);
  });

  it('takes as many steps and edges as are allowed, ten thousand deep, and no more', async () => {
    expect((await checkGraph(chain(10_000))).steps).toHaveLength(10_000);
    expect((await checkGraph(chain(10_001))).errors).toMatchObject([
      { detail: 'must have at most 10000 steps' },
    ]);
    const wide = (edges: number) => {
      const roots = Array.from({ length: 5_000 }, (_, i) => `r${i}`);
      const ends = Array.from({ length: edges / 5_000 }, (_, i) => [`e${i}`, { after: roots }] as const);
      return Object.fromEntries([...roots.map((name) => [name, {}] as const), ...ends]);
    };
    expect((await checkGraph(wide(50_000))).steps).toHaveLength(5_010);
    expect((await checkGraph(wide(55_000))).errors).toMatchObject([
      { detail: expect.stringContaining('50000') },
    ]);
  });

  it('shortens the names of a long cycle, and the list of mistakes', async () => {
    const ring = { ...chain(10_000), s0: { after: ['s9999'] } };
    const [error, ...others] = (await checkGraph(ring)).errors!;
    expect(others).toEqual([]);
    expect(error!.detail).toMatch(/: s0 → s1 → .* → … 9981 more … → .* → s9999 → s0$/);
    const unknown = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, i) => [`s${i}`, { after: ['x', 'y'] }]),
    );
    expect((await checkGraph(unknown)).errors!.length).toBeLessThan(30);
    const selves = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, i) => [`s${i}`, { after: [`s${i}`] }]),
    );
    expect((await checkGraph(selves)).errors!.length).toBeLessThan(30);
  });

  it('finds ten thousand far ancestors in little time', async () => {
    const jobs = chain(10_000, (i) =>
      i < 2 ? {} : { payload: json({ $from: `s${(i * 7919) % (i - 1)}.result` }) },
    );
    const started = performance.now();
    expect((await checkGraph(jobs)).steps).toHaveLength(10_000);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it('lets the event loop run while it checks as many references as are allowed', async () => {
    const from = (i: number, n: number) => ({ $from: `s${(i * 7919 + n * 104_729) % (i - 1)}.result` });
    const jobs = chain(10_000, (i) =>
      i < 2 ? {} : { payload: json(Array.from({ length: 5 }, (_, n) => from(i, n))) },
    );
    const { count, longestMs } = await turnsOf(async () =>
      expect((await checkGraph(jobs)).steps).toHaveLength(10_000),
    );
    expect(count).toBeGreaterThan(10);
    expect(longestMs).toBeLessThan(150);
  });

  it('lets the event loop run while it searches one payload of many lists', async () => {
    const payload = json([{ $from: 'a.result' }, ...Array.from({ length: 300_000 }, () => [])]);
    const jobs = { a: {}, b: { after: ['a'], payload } };
    const { count } = await turnsOf(async () => expect((await checkGraph(jobs)).steps).toHaveLength(2));
    expect(count).toBeGreaterThan(5);
  });

  it('takes as many references as are allowed in all payloads, and no more', async () => {
    const payload = json(Array.from({ length: 10_000 }, () => ({ $from: 'a.result' })));
    const behind = (steps: number) =>
      Object.fromEntries(Array.from({ length: steps }, (_, i) => [`b${i}`, { after: ['a'], payload }]));
    expect((await checkGraph({ a: {}, ...behind(5) })).steps).toHaveLength(6);
    const one = { c: { after: ['a'], payload: json({ $from: 'a.result' }) } };
    expect((await checkGraph({ a: {}, ...behind(5), ...one })).errors).toEqual([
      { pointer: '/jobs', detail: 'must have at most 50000 "$from" in all payloads' },
    ]);
  });
});

describe('steps that are added to others', () => {
  const known = new Map([
    ['ended', { hasEnded: true }],
    ['running', { hasEnded: false }],
  ]);

  it('may name those that exist, and refer to them if they have ended or come before', async () => {
    const { steps } = await checkGraph(
      {
        a: { after: ['running'], payload: json({ $from: 'running.result' }) },
        b: { after: ['a'], payload: json([{ $from: 'running.result' }, { $from: 'ended.result' }]) },
        c: { payload: json({ $from: 'ended.result.x' }) },
      },
      '/jobs',
      known,
    );
    const names = steps!.map(({ name }) => name);
    expect([...names].sort()).toEqual(['a', 'b', 'c', 'ended', 'running']);
    expect(names.indexOf('a')).toBeGreaterThan(names.indexOf('running'));
    expect(names.indexOf('b')).toBeGreaterThan(names.indexOf('a'));
  });

  it('may not refer to one that runs beside them', async () => {
    const { errors } = await checkGraph(
      { a: { payload: json({ $from: 'running.result' }) } },
      '/jobs',
      known,
    );
    expect(errors).toMatchObject([{ pointer: '/jobs/a/payload/$from' }]);
  });
});
