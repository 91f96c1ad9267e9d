import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { elapsed, relativeTime, renderDetails, renderTable, truncate } from './output.js';
import { painterFor } from './paint.js';

const paint = painterFor({ isTTY: false }, {});
const colour = painterFor({ isTTY: true }, {});

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
          for (const line of lines) expect([...line].length).toBeLessThanOrEqual(width);
        },
      ),
    );
  });
});

describe('renderDetails', () => {
  it('leaves out what is absent and lines up the rest', () => {
    const text = renderDetails(
      [
        ['id', 'x'],
        ['nothing', null],
        ['longer', { text: 'y', style: 'red' }],
      ],
      { paint },
    );
    expect(text).toBe('id      x\nlonger  y\n');
  });

  it('colours values on a terminal', () => {
    const text = renderDetails([['state', { text: 'failed', style: 'red' }]], { paint: colour });
    expect(text).toContain('\u001b[31mfailed\u001b[0m');
  });
});

describe('painterFor', () => {
  it('does not colour when NO_COLOR is set', () => {
    expect(painterFor({ isTTY: true }, { NO_COLOR: '1' })('red', 'x')).toBe('x');
  });
});

describe('truncate', () => {
  it('counts characters, not code units', () => {
    expect(truncate('😀😀😀', 3)).toBe('😀😀😀');
    expect(truncate('😀😀😀', 2)).toBe('😀…');
  });
});

describe('relativeTime', () => {
  const now = Date.parse('2026-12-24T18:00:00Z');

  it('tells past from future', () => {
    expect(relativeTime('2026-12-24T17:59:30Z', now)).toBe('30s ago');
    expect(relativeTime('2026-12-24T18:05:00Z', now)).toBe('in 5m');
    expect(relativeTime('2026-12-24T18:00:00.500Z', now)).toBe('now');
    expect(relativeTime(null, now)).toBe('-');
  });
});

describe('elapsed', () => {
  it('needs both ends', () => {
    expect(elapsed('2026-12-24T18:00:00Z', '2026-12-24T18:00:02.500Z')).toBe('2.5s');
    expect(elapsed(null, '2026-12-24T18:00:02Z')).toBeNull();
  });
});
