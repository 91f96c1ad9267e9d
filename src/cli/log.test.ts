import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { expect, it } from 'vitest';
import { openLog } from './log.js';

const plain = (_style: unknown, text: string) => text;

it.runIf(existsSync('/dev/full'))(
  'a log whose disk is full is dropped, and says so once there is room',
  () => {
    const full = openSync('/dev/full', 'w');
    let isFull = true;
    const written: string[] = [];
    const stream = {
      write(text: string, done?: (error?: Error | null) => void): void {
        try {
          if (isFull) writeSync(full, text);
          written.push(text);
          done?.();
        } catch (error) {
          done?.(error as Error);
        }
      },
    };
    const log = openLog(stream, 'info', plain);
    log.info('lost');
    log.warn('lost too');
    isFull = false;
    log.info('after');
    log.info('and on');
    closeSync(full);
    const messages = written
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).msg);
    expect(messages).toEqual([expect.stringMatching(/^2 lines .* ENOSPC/), 'after', 'and on']);
  },
);
