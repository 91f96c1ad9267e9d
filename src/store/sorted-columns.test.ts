import { describe, expect, it } from 'vitest';
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

describe('rows by the place of their ids', () => {
  it('have their values looked up by place only where they differ', () => {
    const sql = ends.inSql(5);
    expect(sql.ids).toBe('$5::uuid[]');
    expect(sql.of('fence', 'j.id')).toBe(
      'CASE WHEN ($7::int[]) IS NULL THEN $6::int ELSE nullif(($7::int[])[width_bucket(j.id, $5::uuid[])], -1) END',
    );
    expect(sql.of('result', 'j.id')).toContain(
      'CASE WHEN $9::bytea IS NULL THEN $8::json ELSE convert_from(',
    );
  });

  it('go in the order of their ids, with one value where it is the same in all', () => {
    const rows = [
      { id: 'b', fence: 1, result: 'null' },
      { id: 'a', fence: 1, result: 'null' },
    ];
    expect(ends.parameters(rows)).toEqual(['{a,b}', 1, null, 'null', null, null, null]);
  });

  it('go with what differs in the same order, texts as slices of one run of bytes', () => {
    const rows = [
      { id: 'b', fence: 2, result: '"é"' },
      { id: 'c', fence: 3, result: null },
      { id: 'a', fence: 1, result: '1' },
    ];
    const bytes = Buffer.from('1"é"');
    expect(ends.parameters(rows)).toEqual(['{a,b,c}', null, '{1,2,3}', null, bytes, '{1,2,6}', '{1,4,0}']);
  });
});
