import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Redaction } from '../http/redaction.js';
import type { EndedMessage } from './host/messages.js';
import { PrintedLines, redactedEnd, tailBytesFor } from './printed-text.js';

const SECRET = 'correct-horse-battery-staple';
const redaction = new Redaction(new Map([[SECRET, '[secret key]']]));

/** Lines as they are shown of a text that comes in parts of these sizes. */
function shownOf(text: string, sizes: readonly number[]): string[] {
  const lines = new PrintedLines(redaction);
  const shown: string[] = [];
  let from = 0;
  for (const size of sizes) {
    shown.push(...lines.add(text.slice(from, from + size), true));
    from += size;
  }
  shown.push(...lines.add(text.slice(from), false), ...lines.end());
  return shown;
}

describe('lines of a program', () => {
  it('show no part of a secret wherever they are cut, and nothing else is lost', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 12 });
    const around = fc.array(fc.string({ unit: fc.constantFrom('x', 'y', ' '), maxLength: 50 }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(around, sizes, (between, cuts) => {
        const shown = shownOf(between.join(SECRET), cuts).join('');
        expect(shown).toBe(between.join('[secret key]'));
      }),
    );
  });

  it('are shown at once when they are whole', () => {
    const lines = new PrintedLines(redaction);
    expect(lines.add(`a ${SECRET} b`, false)).toEqual(['a [secret key] b']);
    expect(lines.add('', false)).toEqual(['']);
    expect(lines.end()).toEqual([]);
  });

  it('are no longer than a log takes, however long the secrets are for which they were kept', () => {
    const long = new Redaction([['line of a key\n'.repeat(150), '[secret key]']]);
    expect(long.longest).toBeGreaterThan(20_000);
    const lines = new PrintedLines(long);
    const part = '🎉'.repeat(4_095);
    const shown = [...lines.add(`x${part}`, true), ...lines.add(part, true), ...lines.add(part, true)];
    shown.push(...lines.add(part, true), ...lines.add(part, false));
    expect(shown.join('')).toBe(`x${part.repeat(5)}`);
    expect(Math.max(...shown.map(({ length }) => length))).toBeLessThanOrEqual(8_192);
    // None begins or ends within a character.
    for (const line of shown) expect(Buffer.from(line).toString()).toBe(line);
  });
});

describe('the end of a stream', () => {
  const end = (stdoutTail: string, stdout: boolean) =>
    redactedEnd(
      { stdoutTail, stderrTail: '', isTailCut: { stdout, stderr: false } } as EndedMessage,
      redaction,
    ).stdoutTail;

  it('shows no part of a secret with which it begins because it was cut', () => {
    const all = `${SECRET}${'x'.repeat(5_000)}`;
    for (let cut = 0; cut <= SECRET.length; cut++) {
      const kept = all.slice(cut).slice(0, tailBytesFor(redaction));
      expect(end(kept, true)).toMatch(/^x*$/);
    }
    expect(tailBytesFor(redaction)).toBe(4_096 + SECRET.length);
  });

  it('shows no part of a secret that the names of others have moved', () => {
    const whole = `${'abcd'.repeat(9)}ZZTOPSECRETEND`;
    const both = new Redaction([
      ['abcd', '[secret with a long name]'],
      [whole, '[secret]'],
    ]);
    for (let cut = 1; cut <= whole.length; cut++) {
      // So many bytes as are kept, and fewer characters.
      const stdoutTail = whole.slice(cut) + 'é'.repeat((tailBytesFor(both) - whole.length + cut) / 2);
      const isTailCut = { stdout: true, stderr: false };
      const { stdoutTail: shown } = redactedEnd(
        { stdoutTail, stderrTail: '', isTailCut } as EndedMessage,
        both,
      );
      expect(shown).toMatch(/^[^A-Z]*$/);
    }
  });

  it('is whole if nothing was cut, and not longer than what is shown', () => {
    expect(end(`${SECRET} and more`, false)).toBe('[secret key] and more');
    expect(end('x'.repeat(4_100), false)).toHaveLength(4_096);
  });
});
