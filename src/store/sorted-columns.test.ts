import { describe, expect, it } from 'vitest';
import { binaryArray } from './array-bytes.js';
import { SortedColumns } from './sorted-columns.js';

interface End {
  readonly id: string;
  readonly fence: number;
  readonly result: string | null;
}

const ends = new SortedColumns<End>([
  { name: 'fence', type: 'int', of: (end) => end.fence },
  { name: 'result', type: 'json', of: (end) => end.result },
]);

const [A, B, C] = ['a', 'b', 'c'].map((letter) => `0000000${letter}-0000-7000-8000-000000000000`) as [
  string,
  string,
  string,
];

describe('rows by the place of their ids', () => {
  it('have their values looked up by place only where they differ', () => {
    const sql = ends.inSql(5);
    expect(sql.ids).toBe('$5::uuid[]');
    expect(sql.of('fence', 'j.id')).toBe(
      'CASE WHEN ($7::int[]) IS NULL THEN $6::int ELSE nullif(($7::int[])[width_bucket(j.id, $5::uuid[])], -1) END',
    );
    expect(sql.of('fence', 'j.id')).toBe(sql.at('fence', sql.placeOf('j.id')));
    expect(sql.of('result', 'j.id')).toContain(
      'CASE WHEN $9::bytea IS NULL THEN $8::json ELSE convert_from(',
    );
  });

  it('go in the order of their ids, with one value where it is the same in all', () => {
    const rows = [
      { id: B, fence: 1, result: 'null' },
      { id: A, fence: 1, result: 'null' },
    ];
    expect(ends.parameters(rows)).toEqual([binaryArray('uuid', [A, B]), 1, null, 'null', null, null, null]);
  });

  it('go with what differs in the same order, texts as slices of one run of bytes', () => {
    const rows = [
      { id: B, fence: 2, result: '"é"' },
      { id: C, fence: 3, result: null },
      { id: A, fence: 1, result: '1' },
    ];
    const bytes = Buffer.from('1"é"');
    expect(ends.parameters(rows)).toEqual([
      binaryArray('uuid', [A, B, C]),
      null,
      binaryArray('int', [1, 2, 3]),
      null,
      bytes,
      binaryArray('int', [1, 2, 6]),
      binaryArray('int', [1, 4, 0]),
    ]);
  });
});
