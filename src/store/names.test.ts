import { expect, it } from 'vitest';
import { turnsOf } from '../../test/turns-of-the-loop.js';
import type { Queryable } from './database.js';
import { LabelSetsError } from './label-set-quota.js';
import { Names } from './names.js';
import type { Named } from './needs-digest.js';

/** A database that knows nothing but what was added to it last, as far as names are concerned. */
function emptyDatabase(): { db: Queryable; sent: { name: string; values: unknown[] }[] } {
  const sent: { name: string; values: unknown[] }[] = [];
  const stored = new Set<string>();
  const query = async ({ name, values }: { name: string; values: unknown[] }) => {
    sent.push({ name, values });
    await new Promise((resolve) => setImmediate(resolve));
    const first = values[0] as (Buffer | string)[];
    if (name === 'add-needs') for (const signature of first) stored.add(signature.toString('hex'));
    if (name === 'count-label-sets') return { rows: first.map((tenant) => ({ tenant, sets: 0 })) };
    const isThere = (value: Buffer | string) => name === 'find-queues' || stored.has(value.toString('hex'));
    const rows = first.flatMap((value, i) => (isThere(value) ? [{ place: i + 1, id: i, usedAt: 0 }] : []));
    return { rows: name.startsWith('find-') ? rows : [] };
  };
  return { db: { query } as unknown as Queryable, sent };
}

/** Needs with almost as many labels as there may be. */
const largeNeeds = (n: number): Named['needs'] => ({
  target: 'handler',
  handler: 'work',
  labels: Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`label-${i}`, `${n}`.padEnd(100, 'x')])),
});
const bulk = (): Named[] =>
  Array.from({ length: 4_000 }, (_, n) => ({ tenant: 'acme', queue: 'default', needs: largeNeeds(n) }));

/** With room for the garbage collector, whose threads count too. It was 250 and more when all was done at once. */
const LONGEST_MS = 120;

it('thousands of large label sets are looked up and stored in short turns', async () => {
  const { db, sent } = emptyDatabase();
  const named = bulk();
  const names = new Names(db, { maxLabelSets: 10_000 });
  expect((await turnsOf(() => names.resolve(named, 0))).longestMs).toBeLessThan(LONGEST_MS);
  const stored = sent.filter(({ name }) => name === 'add-needs');
  expect(stored.length).toBeGreaterThan(20);
  expect(stored.flatMap(({ values }) => values[0])).toHaveLength(4_000);
});

it('so are those that are refused, and who asks afterwards which ones computes nothing again', async () => {
  const { db } = emptyDatabase();
  const named = bulk();
  const names = new Names(db, { maxLabelSets: 100 });
  let error: unknown;
  const refused = async () => {
    error = await names.resolve(named, 0).catch((failure: unknown) => failure);
  };
  expect((await turnsOf(refused)).longestMs).toBeLessThan(LONGEST_MS);
  expect(error).toBeInstanceOf(LabelSetsError);
  const begun = process.cpuUsage();
  // Those that fit into the quota are not refused.
  expect(named.filter((each) => (error as LabelSetsError).refuses(each))).toHaveLength(3_900);
  const { user, system } = process.cpuUsage(begun);
  expect((user + system) / 1_000).toBeLessThan(20);
});

it('needs that two tenants share are told apart by tenant', async () => {
  const { db } = emptyDatabase();
  const names = new Names(db);
  const needs = largeNeeds(1);
  const [a, b, again] = await names.resolve(
    ['a', 'b', 'a'].map((tenant) => ({ tenant, queue: 'default', needs })),
    0,
  );
  expect(again!.needsName.signature).toEqual(a!.needsName.signature);
  expect(b!.needsName.signature).not.toEqual(a!.needsName.signature);
});
