import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Progress, progressBar } from './progress-line.js';

function screen(isTTY: boolean) {
  const written: string[] = [];
  return { isTTY, columns: 20, written, write: (text: string) => written.push(text) };
}

describe('progressBar', () => {
  it('is full only at the end and always as wide as asked', () => {
    fc.assert(
      fc.property(fc.double(), fc.integer({ min: 1, max: 80 }), (fraction, width) => {
        const bar = progressBar(fraction, width);
        expect(bar).toHaveLength(width);
        if (fraction < 1) expect(bar).toContain('░');
      }),
    );
    expect(progressBar(1, 4)).toBe('████');
    expect(progressBar(0.5, 4)).toBe('██░░');
  });
});

describe('Progress', () => {
  it('redraws one line on a terminal, cut to its width', () => {
    const terminal = screen(true);
    const progress = new Progress({ screen: terminal, now: () => 0 });
    progress.show('a bar that is much too long', 'plain');
    progress.line('for good');
    expect(terminal.written).toEqual(['\r\u001b[2Ka bar that is much…', '\r\u001b[2K', 'for good\n']);
  });

  it('writes plain lines elsewhere, not more often than asked', () => {
    const file = screen(false);
    let now = 0;
    const progress = new Progress({ screen: file, now: () => now, plainEveryMs: 2_000 });
    for (now = 0; now <= 4_000; now += 500) progress.show('bar', `at ${now}`);
    progress.show('bar', 'the end', true);
    progress.clear();
    expect(file.written).toEqual(['at 0\n', 'at 2000\n', 'at 4000\n', 'the end\n']);
  });
});
