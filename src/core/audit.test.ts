import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type AuditEntry, auditEntry, auditLine, ChainCheck, chain, NO_HASH } from './audit.js';

const AUTHOR = { keyId: null, keyName: 'ops', address: '10.0.0.1', requestId: 'r-1' };
const HEAD = { sequence: 0, hash: NO_HASH };

function entries(count: number): AuditEntry[] {
  return Array.from({ length: count }, (_, n) =>
    auditEntry(
      AUTHOR,
      1_700_000_000_000 + n,
      'queue.pause',
      { kind: 'queue', name: `queue "${n}" ü`, tenant: 'a' },
      { before: { paused: false, 10: 'ten', a: n }, after: { paused: true } },
    ),
  );
}

function linesOf(all: readonly AuditEntry[], shard = 0, head = HEAD): string[] {
  const links = chain(shard, head, all);
  return all.map((entry, n) => auditLine(shard, entry, links[n]!));
}

function faultsOf(lines: readonly string[]): string[] {
  const check = new ChainCheck();
  for (const line of lines) check.add(line);
  return check.faults.map(({ problem, sequence }) => `${problem} ${sequence}`);
}

describe('a view in an entry', () => {
  it('that is too large is replaced by its size and its hash', () => {
    const subject = { kind: 'jobs', name: 'ids', tenant: 'a' } as const;
    const { before } = auditEntry(AUTHOR, 0, 'jobs.cancel', subject, { before: { ids: 'x'.repeat(20_000) } });
    expect(JSON.parse(before!)).toEqual({
      leftOut: '20010 bytes',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });
});

describe('a chain', () => {
  it('is hashed over the exported line without its hash, which holds the hash of the line before', () => {
    const lines = linesOf(entries(3));
    let previous = '0'.repeat(64);
    for (const line of lines) {
      const { hash, previous: named } = JSON.parse(line);
      expect(named).toBe(previous);
      const unhashed = line.replace(/,"hash":"[0-9a-f]{64}"\}$/, '}');
      expect(createHash('sha256').update(unhashed).digest('hex')).toBe(hash);
      previous = hash;
    }
  });

  it('is the same after its lines were parsed and written again', () => {
    const lines = linesOf(entries(3));
    expect(lines.map((line) => JSON.stringify(JSON.parse(line)))).toEqual(lines);
  });

  it('of intact entries is whole, also when retention has removed the first ones', () => {
    const lines = linesOf(entries(20));
    expect(faultsOf(lines)).toEqual([]);
    expect(faultsOf(lines.slice(7))).toEqual([]);
    const { sequence, hash } = JSON.parse(lines[6]!);
    const check = new ChainCheck();
    check.begin(0, { sequence, hash });
    for (const line of lines.slice(7)) check.add(line);
    check.end(0, JSON.parse(lines[19]!));
    expect(check.faults).toEqual([]);
  });

  it('of several shards is checked shard by shard', () => {
    const [a, b] = [linesOf(entries(3), 0), linesOf(entries(3), 1)];
    expect(faultsOf([...a, ...b])).toEqual([]);
    expect(faultsOf([...a, b[0]!, b[2]!])).toEqual(['missing 3']);
  });
});

describe('a check finds', () => {
  const all = entries(6);
  const lines = linesOf(all);

  it('an entry that was changed', () => {
    const changed = lines.map((line, n) =>
      n === 2 ? line.replace('"keyName":"ops"', '"keyName":"eve"') : line,
    );
    expect(faultsOf(changed)).toEqual(['changed 3']);
  });

  it('an entry that was changed together with its hash', () => {
    const forged = linesOf([{ ...all[2]!, keyName: 'eve' }], 0, JSON.parse(lines[1]!));
    expect(faultsOf([...lines.slice(0, 2), ...forged, ...lines.slice(3)])).toEqual(['changed 4']);
  });

  it('entries that were removed, in the middle, at the known beginning and at the known end', () => {
    expect(faultsOf([...lines.slice(0, 2), ...lines.slice(3)])).toEqual(['missing 4']);
    const check = new ChainCheck();
    check.begin(0, HEAD);
    for (const line of lines.slice(1, 5)) check.add(line);
    check.end(0, JSON.parse(lines[5]!));
    expect(check.faults.map(({ detail }) => detail)).toEqual([
      'entry 1 is missing before entry 2',
      'entry 6 is missing at the end',
    ]);
  });

  it('entries that change places, or come twice', () => {
    expect(faultsOf([lines[0]!, lines[2]!, lines[1]!, lines[3]!])).toEqual(['missing 3', 'reordered 2']);
    expect(faultsOf([lines[0]!, lines[1]!, lines[1]!])).toEqual(['reordered 2']);
  });

  it('an end that is another than the known one, and lines that are no entries', () => {
    const check = new ChainCheck();
    for (const line of lines) check.add(line);
    check.end(0, { sequence: 6, hash: NO_HASH });
    expect(check.faults).toMatchObject([{ problem: 'changed', sequence: 6 }]);
    expect(faultsOf(['{}', 'no JSON', 'null'])).toEqual(['unreadable 0', 'unreadable 0', 'unreadable 0']);
  });
});
