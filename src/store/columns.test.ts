import { describe, expect, it } from 'vitest';
import { turnsOf } from '../../test/turns-of-the-loop.js';
import { binaryArray } from './array-bytes.js';
import { Columns, type Sent } from './columns.js';

interface Pair {
  readonly id: string;
  readonly name: string | null;
  readonly size: number;
}

const pairs = new Columns<Pair>([
  { name: 'id', type: 'text', of: (pair) => pair.id },
  { name: 'name', type: 'text', of: (pair) => pair.name },
  { name: 'size', type: 'int', of: (pair) => pair.size },
]);

describe('rows by columns', () => {
  it('have an array and a single value for each column but the first, which tells them apart', () => {
    const sql = pairs.inSql(4);
    expect(sql.source).toBe('unnest($4::text[], $5::text[], $6::int[]) u(id, name, size)');
    expect(sql.all).toBe('u.id, coalesce(u.name, $7::text), coalesce(u.size, $8::int)');
    expect(sql.of('size')).toBe('coalesce(u.size, $8::int)');
    expect(sql.next).toBe(9);
  });

  it('go as arrays where they differ and as one value where they do not', () => {
    const rows = [
      { id: 'a', name: 'x', size: 1 },
      { id: 'b', name: 'x', size: 2 },
    ];
    expect(pairs.parameters(rows)).toEqual(['{"a","b"}', null, binaryArray('int', [1, 2]), 'x', null]);
  });

  it('keep what is missing in some rows only', () => {
    const rows = [
      { id: 'a', name: null, size: 1 },
      { id: 'b', name: 'x', size: 1 },
    ];
    expect(pairs.parameters(rows)).toEqual(['{"a","b"}', '{null,"x"}', null, null, 1]);
  });

  it('are as many as the first column says, even a single one', () => {
    expect(pairs.parameters([{ id: 'a', name: null, size: 1 }])).toEqual(['{"a"}', null, null, null, 1]);
    expect(pairs.parameters([])).toEqual(['{}', '{}', binaryArray('int', []), null, null]);
  });

  it('are the same when they are made in slices, between which the event loop goes on', async () => {
    const rows = Array.from({ length: 200_000 }, (_, n) => ({ id: `${n}`, name: `name-${n}`, size: n }));
    let made: readonly Sent[] = [];
    const { count } = await turnsOf(async () => {
      made = await pairs.parametersInSlices(rows);
    });
    // As texts, because comparing so many bytes one by one takes seconds.
    const texts = (sent: readonly Sent[]) =>
      sent.map((each) => (Buffer.isBuffer(each) ? each.toString('hex') : each));
    expect(texts(made)).toEqual(texts(pairs.parameters(rows)));
    expect(count).toBeGreaterThan(1);
  });

  it('can be a part of other rows', () => {
    const wider = new Columns<{ pair: Pair }>(pairs.inside((whole: { pair: Pair }) => whole.pair));
    expect(wider.names).toBe('id, name, size');
    expect(wider.parameters([{ pair: { id: 'a', name: 'x', size: 1 } }])).toEqual([
      '{"a"}',
      null,
      null,
      'x',
      1,
    ]);
  });

  it('have no arrays for a part that all rows share', () => {
    const part = ({ of }: { of: object }) => of;
    const parted = new Columns<{ id: string; of: { name: string } }>([
      { name: 'id', type: 'text', of: ({ id }) => id },
      { name: 'name', type: 'text', of: (row) => row.of.name, part },
    ]);
    const shared = { name: 'x' };
    const rows = ['a', 'b'].map((id) => ({ id, of: shared }));
    expect(parted.isPartShared(rows)).toBe(true);
    expect(parted.isPartShared([...rows, { id: 'c', of: { name: 'x' } }])).toBe(false);
    const sql = parted.shared().inSql(4);
    expect(sql.source).toBe('unnest($4::text[]) u(id)');
    expect(sql.all).toBe('u.id, $5::text');
    expect(sql.next).toBe(6);
    expect(parted.shared().parameters(rows)).toEqual(['{"a","b"}', 'x']);
  });
});
