import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { markFromStat, processMark } from './processes.js';

describe('the mark of a process', () => {
  it('stays the same while the process lives and is gone with it', async () => {
    const child = spawn('sleep', ['60']);
    await once(child, 'spawn');
    const mark = processMark(child.pid!);
    expect(mark).not.toBeNull();
    expect(processMark(child.pid!)).toBe(mark);
    child.kill();
    await once(child, 'exit');
    expect(processMark(child.pid!)).toBeNull();
  });

  it('is read after the last bracket of the name, which may hold brackets and blanks', () => {
    const rest = Array.from({ length: 30 }, (_, index) => index + 4).join(' ');
    expect(markFromStat(`42 (a) b (c)) S ${rest}`, 'boot')).toBe('boot/22');
  });

  it('is none for a process that is dead and not yet cleared away', () => {
    const rest = Array.from({ length: 30 }, (_, index) => index + 4).join(' ');
    expect(markFromStat(`42 (postgres) Z ${rest}`, 'boot')).toBeNull();
  });
});
