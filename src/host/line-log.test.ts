import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { openLineLog } from './line-log.js';

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
    const log = openLineLog(stream, 'info', {});
    log.info({}, 'lost');
    log.warn({}, 'lost too');
    isFull = false;
    log.info({}, 'after');
    log.info({}, 'and on');
    closeSync(full);
    const messages = written
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).msg);
    expect(messages).toEqual([expect.stringMatching(/^2 lines .* ENOSPC/), 'after', 'and on']);
  },
);

/** A stream that keeps what is written to it. */
function paper(isTTY = false) {
  const written: string[] = [];
  return { isTTY, written, write: (text: string) => written.push(text) };
}

it('writes JSON lines in the form of pino where nobody reads along', () => {
  const stream = paper();
  const log = openLineLog(stream, 'info', {});
  log.debug({}, 'too little to say');
  log.warn({ job: 'j1', attempt: 2, gone: undefined }, 'an attempt failed');
  log.error({ err: Object.assign(new Error('broken'), { code: 'E1' }) }, 'a request failed');
  const lines = stream.written.map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { level: 40, pid: process.pid, job: 'j1', attempt: 2, msg: 'an attempt failed' },
    { level: 50, err: { message: 'broken', code: 'E1', stack: expect.stringContaining('line-log.test') } },
  ]);
  expect(Date.parse(lines[0].time)).toBeGreaterThan(Date.now() - 60_000);
});

it('writes readable lines on a terminal, with stacks below, and lets nothing through that moves the cursor', () => {
  const stream = paper(true);
  const log = openLineLog(stream, 'debug', { NO_COLOR: '1' });
  const evil = 'boom\u001b[2Jx';
  log.warn({ job: 'j1', urls: ['http://a', 'http://b'], code: undefined, error: evil }, 'an attempt failed');
  log.debug({ stack: 'Error: boom\n    at handler (tasks.mjs:1:2)' }, 'from here');
  const [first, second] = stream.written;
  expect(first).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} warn {2}an attempt failed job=j1 urls=http:\/\/a, http:\/\/b error=boom\ufffd\[2Jx\n$/,
  );
  expect(second).toMatch(/debug from here\n {4}Error: boom\n {4}at handler \(tasks\.mjs:1:2\)\n$/);
  openLineLog(stream, 'debug', {}).warn({}, 'in colour');
  expect(stream.written.at(-1)).toContain('\u001b[33mwarn');
});

it('says what it can of fields that JSON cannot hold', () => {
  const stream = paper();
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  openLineLog(stream, 'info', {}).info({ cyclic, big: 1n }, 'odd');
  expect(JSON.parse(stream.written[0]!)).toMatchObject({ msg: 'odd', unreadable: 'cyclic,big' });
  const terminal = paper(true);
  openLineLog(terminal, 'info', {}).info({ cyclic, big: 1n }, 'odd');
  expect(terminal.written[0]).toContain('odd');
});

it('outlives a stream that fails: whoever logs to a closed pipe goes on', async () => {
  const failures: Error[] = [];
  const closed = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  });
  const log = openLineLog(closed, 'info', {});
  log.info({}, 'one');
  // The error reaches the listeners of the stream; without one it would end the process.
  await new Promise<void>((resolve) => closed.once('close', resolve));
  log.info({}, 'two');
  await new Promise<void>((resolve) => setImmediate(resolve));
  const throwing = openLineLog({ write: () => failures.push(fail()) }, 'info', {});
  expect(() => throwing.info({}, 'three')).not.toThrow();
});

function fail(): never {
  throw new Error('the stream is gone');
}

it('refuses a level that does not exist', () => {
  expect(() => openLineLog(paper(), 'loud', {})).toThrow(/logLevel: expected one of/);
  const silent = paper();
  openLineLog(silent, 'silent', {}).error({}, 'nothing');
  expect(silent.written).toEqual([]);
});
