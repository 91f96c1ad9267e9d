import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inTransaction } from '../../../src/store/database.js';
import {
  type LeaderStatement,
  leaderStatements,
  leaderTransaction,
  runAsLeader,
  type TermKey,
  TermOverError,
  WHILE_TERM_LASTS,
} from '../../../src/store/leader-statement.js';
import { makePartitionsAhead, removeOldDays } from '../../../src/store/retention.js';
import { leaderArguments } from './leader-arguments.js';
import { populate, snapshot } from './populated-shard.js';
import { TestShard } from './test-shard.js';

// Every file of the store is loaded, so that no statement can escape by not being imported here.
const STORE = new URL('../../../src/store/', import.meta.url);
for (const file of readdirSync(STORE)) {
  if (file.endsWith('.ts') && !file.includes('.test')) await import(new URL(file, STORE).href);
}
const statements = leaderStatements().map((statement) => [statement.name, statement] as const);

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;
let before: Record<string, string>;
let values: Readonly<Record<string, readonly unknown[]>>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  await shard.lead();
  // A second term of the same node, so that an older epoch of the right holder exists.
  term = await shard.lead();
  values = await leaderArguments(shard, await populate(shard, term));
  before = await snapshot(shard.pool);
});
afterAll(() => close());

/** Runs the statement in a transaction that is rolled back; answers with the shard as it was inside. */
async function shardAfter(
  statement: LeaderStatement,
  by: TermKey,
  rest: readonly unknown[],
): Promise<Record<string, string>> {
  let after: Record<string, string> | undefined;
  const rollBack = new Error('roll back');
  await inTransaction(shard.hot, async (db) => {
    await runAsLeader(db, by, statement, [...rest]);
    after = await snapshot(db);
    throw rollBack;
  }).catch((error: unknown) => {
    if (error !== rollBack) throw error;
  });
  return after!;
}

/** The statement as it would be if somebody forgot the gates of its parts. */
function withoutGates(statement: LeaderStatement): LeaderStatement {
  const text = statement.text
    .replaceAll(WHILE_TERM_LASTS, 'true')
    .replace('FROM term LEFT JOIN answer ON true', 'FROM answer');
  return { ...statement, name: `${statement.name} without gates`, text };
}

it('every leader statement has arguments in this test, and no others', () => {
  expect(Object.keys(values).sort()).toEqual(statements.map(([name]) => name).sort());
});

describe.each(statements)('%s', (name, statement) => {
  it('does its work for the term that lasts', async () => {
    expect(await shardAfter(statement, term, values[name]!)).not.toEqual(before);
  });

  it.each([
    ['an older epoch', (lasting: TermKey) => ({ ...lasting, epoch: lasting.epoch - 1 })],
    ['a newer epoch', (lasting: TermKey) => ({ ...lasting, epoch: lasting.epoch + 1 })],
    ['the same epoch of another holder', (lasting: TermKey) => ({ ...lasting, holder: 'node-b' })],
    ['another shard', (lasting: TermKey) => ({ ...lasting, shard: lasting.shard + 1 })],
  ])('changes nothing for %s', async (_, wrong) => {
    const late = runAsLeader(shard.hot, wrong(term), statement, [...values[name]!]);
    await expect(late).rejects.toThrow(TermOverError);
    expect(await snapshot(shard.pool)).toEqual(before);
  });

  it('would change something for an old epoch if its gates were forgotten', async () => {
    const old = { ...term, epoch: term.epoch - 1 };
    expect(await shardAfter(withoutGates(statement), old, values[name]!)).not.toEqual(before);
  });
});

describe('a transaction of several statements', () => {
  it('begins with the fence: with an old term nothing of it runs', async () => {
    let ran = false;
    const late = leaderTransaction(shard.pool, { ...term, epoch: term.epoch - 1 }, async () => {
      ran = true;
    });
    await expect(late).rejects.toThrow(TermOverError);
    expect(ran).toBe(false);
  });

  it('is undone as a whole when its work fails', async () => {
    const failing = leaderTransaction(shard.pool, term, async (db) => {
      await db.query('DELETE FROM punctual.jobs');
      throw new Error('half way');
    });
    await expect(failing).rejects.toThrow();
    expect(await snapshot(shard.pool)).toEqual(before);
  });

  it('makes and removes no days for an old term', async () => {
    const old = { ...term, holder: 'node-b' };
    const far = Date.now() + 400 * 86_400_000;
    await expect(makePartitionsAhead(shard.pool, old, far)).rejects.toThrow(TermOverError);
    await expect(removeOldDays(shard.pool, old, far)).rejects.toThrow(TermOverError);
    expect(await snapshot(shard.pool)).toEqual(before);
  });
});
