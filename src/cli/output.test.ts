import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { painterFor } from '../core/paint.js';
import { elapsed, Output, plural, relativeTime, renderDetails } from './output.js';

const paint = painterFor({ isTTY: false }, {});
const colour = painterFor({ isTTY: true }, {});

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

describe('plural', () => {
  it('counts one thing as one', () => {
    expect([plural(0, 'job'), plural(1, 'job'), plural(2, 'job')]).toEqual(['0 jobs', '1 job', '2 jobs']);
    expect(plural(1, 'job runs', 'jobs run')).toBe('1 job runs');
    expect(plural(3, 'job runs', 'jobs run')).toBe('3 jobs run');
  });
});

describe('an output that redraws', () => {
  it('writes over what the screen shows, and no more than fits on it', () => {
    const { cli, stdout } = cliUnderTest({ isTTY: true, rows: 5 });
    const output = new Output(cli);
    output.redraw();
    output.document(null, () => 'a\nb\nc\nd\n');
    expect(stdout()).toBe('\u001b[Ha\u001b[K\nb\u001b[K\n… 2 more lines\u001b[K\n\u001b[J');
  });

  it('separates documents by an empty line where there is no screen, and keeps JSON by the line', () => {
    const shown = (json: boolean) => {
      const { cli, stdout } = cliUnderTest();
      const output = new Output(cli, { json });
      output.redraw();
      for (const text of ['a', 'b']) output.document(text, () => `${text}\n`);
      return stdout();
    };
    expect(shown(false)).toBe('a\n\nb\n');
    expect(shown(true)).toBe('"a"\n"b"\n');
  });
});
