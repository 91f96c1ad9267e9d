import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { Term } from '../../src/cluster/term.js';
import { type AuditView, auditEntry } from '../../src/core/audit.js';
import { TimerClock } from '../../src/core/clock.js';
import { resolveConfig } from '../../src/core/config.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { AuditChain } from '../../src/dispatch/audit-chain.js';
import { LeaderState } from '../../src/dispatch/leader-state.js';
import { addEntry, beginEntry } from '../../src/store/audit.js';
import { auditedWork } from '../../src/store/audited-work.js';
import { readAuditChain } from '../../src/store/read-audit-chain.js';
import { cliUnderTest } from '../cli-under-test.js';
import { temporaryFolder } from '../temporary-folder.js';
import { TENANT, TestShard } from './store/test-shard.js';

const DAY_MS = 86_400_000;
const AUTHOR = { keyId: null, keyName: 'ops', address: '10.0.0.1', requestId: null };

/** A new leader of the shard, whose chain is not started: tests call its pass. */
async function lead(shard: TestShard, clock = new TimerClock(() => Date.now())) {
  const { shard: number, epoch, holder } = await shard.lead();
  const state = new LeaderState({
    term: new Term(number, epoch, holder, Number.POSITIVE_INFINITY),
    ...{ hot: shard.hot, pool: shard.pool, patient: shard.pool, clock },
    config: resolveConfig({ auditRetention: '30d' }, {}, () => '').config,
    log: SILENT_LOG,
    secret: Buffer.alloc(32),
    renounce: () => undefined,
  });
  return { state, chain: new AuditChain(state) };
}

function entry(n: number, at = Date.now(), outcome: 'done' | 'unknown' = 'done') {
  const subject = { kind: 'queue', name: `queue-${n}`, tenant: TENANT } as const;
  return auditEntry(AUTHOR, at, 'queue.pause', subject, { before: { n }, outcome });
}

async function write(shard: TestShard, count: number, at?: number): Promise<void> {
  for (let n = 0; n < count; n++) await addEntry(shard.pool, entry(n, at), null);
}

/** The lines of the chain, and what `punctual audit verify` says about it. */
async function verify(shard: TestShard, ...args: string[]) {
  const lines: string[] = [];
  await readAuditChain(
    shard.url,
    0,
    () => undefined,
    (line) => lines.push(line),
  );
  const shell = cliUnderTest();
  const source = args.length > 0 ? args : ['--database-url', shard.url];
  const code = await runCli(['audit', 'verify', '--json', ...source], shell.cli);
  const said = code <= 1 ? JSON.parse(shell.stdout()) : shell.stderr();
  return { lines, entries: lines.map((line): AuditView => JSON.parse(line)), code, said };
}

/** Changes tables as only somebody can who may switch their triggers off. */
async function tamper(shard: TestShard, ...statements: string[]): Promise<void> {
  for (const table of ['audit', 'audit_chain'])
    await shard.pool.query(`ALTER TABLE punctual.${table} DISABLE TRIGGER USER`);
  for (const text of statements) await shard.pool.query(text);
  for (const table of ['audit', 'audit_chain'])
    await shard.pool.query(`ALTER TABLE punctual.${table} ENABLE TRIGGER USER`);
}

describe('the chain', () => {
  it('takes in many entries, of several terms, without a gap', async () => {
    const shard = await TestShard.forTest();
    await write(shard, 450);
    const first = await lead(shard);
    await first.chain.runOnce();
    await write(shard, 5);
    const second = await lead(shard);
    await expect(first.chain.runOnce()).resolves.toBeUndefined();
    await second.chain.runOnce();
    const { entries, code, said } = await verify(shard);
    expect(entries.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 455 }, (_, n) => n + 1));
    expect({ code, said }).toEqual({ code: 0, said: { ok: true, entries: 455, faults: [] } });
  });

  it('refuses a leader whose term is over', async () => {
    const shard = await TestShard.forTest();
    const old = await lead(shard);
    await lead(shard);
    await write(shard, 3);
    await expect(old.chain.runOnce()).rejects.toMatchObject({ code: 'NO_LEADER' });
    expect((await verify(shard)).entries).toEqual([]);
  });

  it('takes in an entry that becomes visible after younger ones', async () => {
    const shard = await TestShard.forTest();
    const { state, chain } = await lead(shard);
    const late = await shard.pool.connect();
    await late.query('BEGIN');
    await addEntry(late, entry(0), null);
    await write(shard, 3);
    await chain.runOnce();
    await late.query('COMMIT');
    late.release();
    state.noteEntry();
    await chain.runOnce();
    const { entries, code } = await verify(shard);
    expect(entries.map(({ subject }) => subject)).toEqual(['queue-0', 'queue-1', 'queue-2', 'queue-0']);
    expect(entries.at(-1)!.id < entries[0]!.id).toBe(true);
    expect(code).toBe(0);
  });

  it('reads nothing while nothing was written', async () => {
    const shard = await TestShard.forTest();
    const { state, chain } = await lead(shard);
    await chain.runOnce();
    // A hidden table would make any statement about it fail.
    await shard.pool.query('ALTER TABLE punctual.audit RENAME TO hidden');
    await chain.runOnce();
    state.noteEntry();
    await expect(chain.runOnce()).rejects.toThrow('punctual.audit');
  });
});

describe('an action of several transactions', () => {
  it('waits for its outcome, and is chained when it has one', async () => {
    const shard = await TestShard.forTest();
    const { state, chain } = await lead(shard);
    const work = async () => {
      await chain.runOnce();
      expect((await verify(shard)).entries).toEqual([]);
      return 3;
    };
    await auditedWork(state, entry(0, Date.now(), 'unknown'), work, (changed) => ({ changed }));
    await chain.runOnce();
    const { entries, code } = await verify(shard);
    expect(entries).toMatchObject([{ outcome: 'done', after: { changed: 3 } }]);
    expect(code).toBe(0);
  });

  it('that fails is recorded as failed', async () => {
    const shard = await TestShard.forTest();
    const { state, chain } = await lead(shard);
    const work = () => Promise.reject(new Error('broken'));
    await expect(auditedWork(state, entry(0, Date.now(), 'unknown'), work, () => ({}))).rejects.toThrow(
      'broken',
    );
    await chain.runOnce();
    expect((await verify(shard)).entries).toMatchObject([
      { outcome: 'failed', after: { error: 'INTERNAL' } },
    ]);
  });

  it('whose leader died stays unknown, and the next leader chains it so', async () => {
    const shard = await TestShard.forTest();
    const first = await lead(shard);
    await beginEntry(shard.hot, first.state.term, entry(0, Date.now(), 'unknown'));
    const second = await lead(shard);
    await second.chain.runOnce();
    const { entries, code } = await verify(shard);
    expect(entries).toMatchObject([{ outcome: 'unknown', before: { n: 0 } }]);
    expect(code).toBe(0);
  });

  it('that never ends is given up after a minute', async () => {
    const shard = await TestShard.forTest();
    let now = Date.now();
    const { state, chain } = await lead(shard, new TimerClock(() => now));
    await beginEntry(shard.hot, state.term, entry(0, now, 'unknown'));
    await chain.runOnce();
    expect((await verify(shard)).entries).toEqual([]);
    now += 61_000;
    await chain.runOnce();
    expect((await verify(shard)).entries).toMatchObject([{ outcome: 'unknown' }]);
  });
});

describe('the tables are append-only for the role of the nodes:', () => {
  const REFUSED: readonly (readonly [string, string])[] = [
    ['changing an entry', `UPDATE punctual.audit SET key_name = 'eve'`],
    ['changing what it shows', `UPDATE punctual.audit SET after = '{}' WHERE sequence IS NOT NULL`],
    ['changing an entry without a place', `UPDATE punctual.audit SET before = NULL WHERE sequence IS NULL`],
    [
      'changing an outcome that is known',
      `UPDATE punctual.audit SET outcome = 'failed' WHERE sequence IS NULL`,
    ],
    [
      'taking an entry out of the chain',
      'UPDATE punctual.audit SET sequence = NULL, previous = NULL, hash = NULL',
    ],
    ['moving an entry', 'UPDATE punctual.audit SET sequence = sequence + 100'],
    ['deleting an entry', 'DELETE FROM punctual.audit'],
    ['deleting an entry without a place', 'DELETE FROM punctual.audit WHERE sequence IS NULL'],
    ['emptying the table', 'TRUNCATE punctual.audit'],
    [
      'adding an entry to the chain',
      `INSERT INTO punctual.audit (id, at, key_name, action, kind, subject, outcome, sequence, previous, hash)
       VALUES (gen_random_uuid(), 0, 'eve', 'x', 'x', 'x', 'done', 9, '', '')`,
    ],
    ['shortening the chain', 'UPDATE punctual.audit_chain SET sequence = 0'],
    ['forging the end of the chain', `UPDATE punctual.audit_chain SET hash = 'x'`],
    ['forgetting the chain', 'DELETE FROM punctual.audit_chain'],
    ['emptying it', 'TRUNCATE punctual.audit_chain'],
    [
      'removing what is young',
      `UPDATE punctual.audit_chain c SET removed_sequence = a.sequence, removed_hash = a.hash
       FROM punctual.audit a WHERE a.sequence = 1`,
    ],
    ['removing what is not there', 'UPDATE punctual.audit_chain SET removed_sequence = 100'],
  ];

  it('every other way of writing is refused', async () => {
    const shard = await TestShard.forTest();
    await write(shard, 2);
    const { chain } = await lead(shard);
    await chain.runOnce();
    await write(shard, 1);
    for (const [what, text] of REFUSED)
      await expect(shard.pool.query(text), what).rejects.toThrow(/append-only|only grows|later|oldest/);
    expect(await verify(shard)).toMatchObject({ code: 0, said: { entries: 2 } });
  });
});

describe('punctual audit verify finds', () => {
  async function chained(): Promise<TestShard> {
    const shard = await TestShard.forTest();
    await write(shard, 6);
    await (await lead(shard)).chain.runOnce();
    return shard;
  }

  it.each([
    [
      'an entry that was changed',
      [`UPDATE punctual.audit SET key_name = 'eve' WHERE sequence = 3`],
      'changed',
      3,
    ],
    ['what it shows', [`UPDATE punctual.audit SET before = '{"n": 2}' WHERE sequence = 3`], 'changed', 3],
    ['an entry that was removed', ['DELETE FROM punctual.audit WHERE sequence = 3'], 'missing', 4],
    ['the first entry, removed', ['DELETE FROM punctual.audit WHERE sequence = 1'], 'missing', 2],
    ['the last entry, removed', ['DELETE FROM punctual.audit WHERE sequence = 6'], 'missing', 6],
    [
      'entries that changed places',
      [
        'UPDATE punctual.audit SET sequence = 100 WHERE sequence = 3',
        'UPDATE punctual.audit SET sequence = 3 WHERE sequence = 4',
        'UPDATE punctual.audit SET sequence = 4 WHERE sequence = 100',
      ],
      'changed',
      3,
    ],
  ])('%s', async (_, statements, problem, sequence) => {
    const shard = await chained();
    await tamper(shard, ...statements);
    const { code, said } = await verify(shard);
    expect(code).toBe(1);
    expect(said).toMatchObject({ ok: false });
    expect(said.faults[0]).toMatchObject({ problem, sequence });
  });

  it('the same in an export, and says which entry it is', async () => {
    const shard = await chained();
    const { lines } = await verify(shard);
    const folder = await temporaryFolder();
    const checkFile = async (text: string) => {
      const path = join(folder, 'audit.jsonl');
      await writeFile(path, text);
      const shell = cliUnderTest({ folder });
      const code = await runCli(['audit', 'verify', '--file', 'audit.jsonl'], shell.cli);
      return { code, stdout: shell.stdout() };
    };
    expect(await checkFile(`${lines.join('\n')}\n`)).toEqual({
      code: 0,
      stdout: '6 entries, the chain is whole\n',
    });
    const third = JSON.parse(lines[2]!);
    const changed = lines.map((line, n) => (n === 2 ? line.replace('queue-2', 'queue-9') : line));
    const { code, stdout } = await checkFile(changed.join('\n'));
    expect(code).toBe(1);
    expect(stdout).toContain(
      `changed: shard 0, entry 3 was changed: its hash is not that of its text (${third.id})`,
    );
    expect(await checkFile('[]\n')).toMatchObject({ code: 1 });
  });
});

describe('retention', () => {
  it('removes the oldest entries in portions, and what is left still verifies', async () => {
    const shard = await TestShard.forTest();
    await write(shard, 1_050, Date.now() - 40 * DAY_MS);
    await write(shard, 5);
    const { state, chain } = await lead(shard);
    await chain.runOnce();
    await chain.found({ unchained: false, oldest: Date.now() - 40 * DAY_MS });
    const { entries, code, said } = await verify(shard);
    expect(entries.map(({ sequence }) => sequence)).toEqual([1_051, 1_052, 1_053, 1_054, 1_055]);
    expect({ code, said }).toMatchObject({ code: 0, said: { ok: true } });
    await write(shard, 1);
    state.noteEntry();
    await chain.runOnce();
    expect(await verify(shard)).toMatchObject({ code: 0, said: { entries: 6 } });
  });

  it('keeps an old entry that comes after a young one, so that no gap arises', async () => {
    const shard = await TestShard.forTest();
    const { state, chain } = await lead(shard);
    await write(shard, 2, Date.now() - 40 * DAY_MS);
    await chain.runOnce();
    await write(shard, 1);
    state.noteEntry();
    await chain.runOnce();
    await write(shard, 1, Date.now() - 40 * DAY_MS);
    state.noteEntry();
    await chain.runOnce();
    await chain.found({ unchained: false, oldest: 0 });
    const { entries, code } = await verify(shard);
    expect(entries.map(({ sequence }) => sequence)).toEqual([3, 4]);
    expect(code).toBe(0);
  });
});
