import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputStream } from './output.js';

function stream({ headBytes = 100, tailBytes = 10, bytes = 1_000 } = {}) {
  const lines: string[] = [];
  const budget = { bytes, isCut: false };
  const open: string[] = [];
  /** All of it, with the ends of whole lines. */
  const shown = { text: '' };
  const onLines = (more: readonly string[], continues: readonly number[]) => {
    open.push(...continues.map((index) => more[index]!));
    lines.push(...more);
    for (const [index, line] of more.entries()) shown.text += continues.includes(index) ? line : `${line}\n`;
  };
  const output = new OutputStream({ headBytes, tailBytes, budget, onLines });
  return { output, lines, open, shown, budget };
}

/** The bytes in pieces of these lengths. */
function piecesOf(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const length of lengths) {
    pieces.push(bytes.subarray(from, from + length));
    from += length;
  }
  return [...pieces, bytes.subarray(from)];
}

describe('what is kept of a stream', () => {
  it('does not depend on the pieces in which it comes', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '🎉', '\n', '\r\n'), maxLength: 40 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(12), { maxLength: 20 }), (whole, lengths) => {
        const { output, lines } = stream({ headBytes: 1_000, tailBytes: 8, bytes: 10_000 });
        const bytes = Buffer.from(whole);
        for (const piece of piecesOf(bytes, lengths)) output.add(piece);
        output.end();
        expect(output.text).toBe(whole);
        expect(output.bytes).toBe(bytes.length);
        expect(whole.endsWith(output.tail)).toBe(true);
        const expected = whole.split('\n').map((line) => line.replace(/\r$/, ''));
        if (expected.at(-1) === '') expected.pop();
        expect(lines).toEqual(expected);
      }),
    );
  });

  it('is no text if it is too long, or no UTF-8', () => {
    const long = stream({ headBytes: 4 });
    long.output.add(Buffer.from('12345'));
    expect(long.output.text).toBeNull();
    const odd = stream();
    odd.output.add(Buffer.from([0x7b, 0xff, 0x7d]));
    expect(odd.output.text).toBeNull();
    expect(odd.output.tail).toBe('{\uFFFD}');
  });

  it('is cut when its lines are used up, however many streams share them', () => {
    const { output, lines, budget } = stream({ bytes: 40 });
    for (let i = 0; i < 100; i++) output.add(Buffer.from('line\n'));
    expect(lines).toEqual(['line', 'line']);
    expect(budget.isCut).toBe(true);
    expect(output.bytes).toBe(500);
  });

  it('has long lines in parts', () => {
    const { output, lines, open } = stream({ bytes: 100_000 });
    output.add(Buffer.from(`${'x'.repeat(20_000)}\nnext\n`));
    expect(lines.map((line) => line.length)).toEqual([8_192, 8_192, 3_616, 4]);
    expect(open.map((line) => line.length)).toEqual([8_192, 8_192]);
    // One whose end has not come goes on, whatever its length.
    output.add(Buffer.from('y'.repeat(9_000)));
    expect(open.slice(2).map((line) => line.length)).toEqual([8_192, 808]);
    expect(output.isTailCut).toBe(true);
  });

  it('has in parts of a long line the same characters, wherever the pieces end', () => {
    const unit = fc.constantFrom('é', '€', '🎉', 'a', '\r', '\r\n');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), fc.nat(40), (end, cut) => {
        const { output, shown } = stream({ headBytes: 1_000, bytes: 100_000 });
        const whole = `${'x'.repeat(8_190)}${end}\nnext\n`;
        const bytes = Buffer.from(whole);
        for (const piece of piecesOf(bytes, [8_180 + cut])) output.add(piece);
        expect(shown.text).toBe(whole.replaceAll('\r\n', '\n'));
      }),
    );
  });

  it('has bytes that are no characters, as long as they may become some', () => {
    const { output, lines } = stream({ bytes: 100_000 });
    output.add(Buffer.concat([Buffer.alloc(8_200, 'x'), Buffer.from([0xf0, 0x9f, 0x8e])]));
    output.end();
    expect(lines.at(-1)).toBe('\uFFFD');
    output.add(Buffer.alloc(9_000, 0x80));
    output.end();
    expect(lines.join('').replaceAll('x', '')).toBe('\uFFFD'.repeat(9_001));
  });

  it('takes little more memory than its bytes, also if they come one by one', () => {
    const streams = Array.from({ length: 20 }, () => stream({ headBytes: 20_000, bytes: 20_000 }).output);
    const collect = collector();
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 10_000; i++) for (const output of streams) output.add(Buffer.alloc(1, 'x'));
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(8 * 1024 * 1024);
    for (const output of streams) expect(output.text).toBe('x'.repeat(10_000));
  });
});

/** Collects what nobody needs any more. */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
