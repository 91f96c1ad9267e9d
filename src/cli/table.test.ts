import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { painterFor } from '../core/paint.js';
import { uuidv7 } from '../core/uuid.js';
import { type Column, renderTable, uniqueLength } from './table.js';
import { textWidth } from './text-width.js';

const paint = painterFor({ isTTY: false }, {});

describe('renderTable', () => {
  it('aligns columns and leaves no blanks at the end of lines', () => {
    const text = renderTable(
      [{ header: 'NAME' }, { header: 'COUNT', align: 'right' }, { header: 'NOTE' }],
      [
        ['a', '1', ''],
        ['longer', '200', 'x'],
      ],
      { paint },
    );
    expect(text).toBe('NAME    COUNT  NOTE\na           1\nlonger    200  x\n');
  });

  it('cuts only the columns that may be cut when the terminal is narrow', () => {
    const text = renderTable(
      [{ header: 'ID' }, { header: 'TEXT', shrink: true }],
      [['0198c4f2-aaaa-7bbb-8ccc-123456789abc', 'a long text that does not fit']],
      { paint, width: 50 },
    );
    expect(text.split('\n')[1]).toBe('0198c4f2-aaaa-7bbb-8ccc-123456789abc  a long text…');
  });

  it('does not let a cell move the cursor or break the line', () => {
    const text = renderTable([{ header: 'TEXT' }], [['a\u001b[2Jb\nc\r']], { paint });
    expect(text).toBe('TEXT\na\ufffd[2Jb c\ufffd\n');
  });

  it('fits any rows into the terminal when every column may shrink', () => {
    const cell = fc.string({ unit: 'grapheme', maxLength: 60 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell), { maxLength: 8 }),
        fc.integer({ min: 14, max: 90 }),
        (rows, width) => {
          const columns = [
            { header: 'A', shrink: true },
            { header: 'B', shrink: true },
          ];
          const lines = renderTable(columns, rows, { paint, width }).split('\n');
          expect(lines.pop()).toBe('');
          expect(lines).toHaveLength(rows.length + 1);
          for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
        },
      ),
    );
  });
});

describe('a table on a narrow terminal', () => {
  const columns: readonly Column[] = [
    { header: 'ID', shrink: 'id' },
    { header: 'NAME', shrink: 'name' },
    { header: 'LESS', drop: 2 },
    { header: 'LEAST', drop: 1 },
    { header: 'ERROR', shrink: true },
  ];
  const name = (n: number) => `a-worker-with-a-long-name-in-the-house-of-mail-${n}`;
  const ids = [1, 2, 3].map(() => uuidv7(1_700_000_000_000));
  const rows = ids.map((id, n) => [id, name(n + 1), 'less', 'least', 'it did not work this time either']);

  it('is whole where there is room, and where there is no terminal', () => {
    const whole = renderTable(columns, rows, { paint });
    expect(renderTable(columns, rows, { paint, width: 200 })).toBe(whole);
    for (const cell of rows.flat()) expect(whole).toContain(cell);
  });

  it('leaves columns out in their declared order, and never wraps', () => {
    const headers = (width: number) => {
      const lines = renderTable(columns, rows, { paint, width }).trimEnd().split('\n');
      for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
      return lines[0]!.split(/\s+/);
    };
    expect(headers(80)).toEqual(['ID', 'NAME', 'LESS', 'LEAST', 'ERROR']);
    expect(headers(62)).toEqual(['ID', 'NAME', 'LESS', 'ERROR']);
    expect(headers(50)).toEqual(['ID', 'NAME', 'ERROR']);
    expect(headers(40)).toEqual(['ID', 'NAME', 'ERROR']);
  });

  it('shows ids by a beginning that tells them apart, without a mark that could be copied along', () => {
    const lines = renderTable(columns, rows, { paint, width: 80 }).trimEnd().split('\n').slice(1);
    const shown = lines.map((line) => line.split(' ')[0]!);
    expect(new Set(shown).size).toBe(3);
    for (const [n, beginning] of shown.entries()) expect(ids[n]!.startsWith(beginning)).toBe(true);
  });

  it('shortens names in the middle', () => {
    const lines = renderTable(columns, rows, { paint, width: 80 }).trimEnd().split('\n').slice(1);
    expect(lines.map((line) => line.split(/\s+/)[1])).toEqual(
      [1, 2, 3].map((n) => `a-worker-wi…-of-mail-${n}`),
    );
  });

  it('never makes different names look alike, however narrow', () => {
    const part = fc.constantFrom('a', 'b', 'mail', '-', '1', '22', '会', '👷');
    const names = fc.array(fc.array(part, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(names, fc.integer({ min: 1, max: 60 }), (parts, width) => {
        const given = parts.map((each) => each.join(''));
        const cells = given.map((each) => [each, 'x']);
        const text = renderTable([{ header: 'N', shrink: 'name' }, { header: 'X' }], cells, { paint, width });
        const shown = text.trimEnd().split('\n').slice(1);
        expect(new Set(shown).size).toBe(new Set(given).size);
      }),
    );
  });

  it('lines up wide characters', () => {
    const cells = [
      ['会议', '1'],
      ['👩‍👩‍👧', '2'],
      ['é', '3'],
    ];
    const lines = renderTable([{ header: 'NAME' }, { header: 'N' }], cells, { paint })
      .trimEnd()
      .split('\n');
    expect(lines).toEqual(['NAME  N', '会议  1', '👩‍👩‍👧    2', 'é     3']);
  });
});

describe('uniqueLength', () => {
  it('tells any ids apart', () => {
    const id = fc.uuid({ version: 7 });
    fc.assert(
      fc.property(fc.array(id), (ids) => {
        const length = uniqueLength(ids);
        expect(new Set(ids.map((each) => each.slice(0, length))).size).toBe(new Set(ids).size);
      }),
    );
  });
});
