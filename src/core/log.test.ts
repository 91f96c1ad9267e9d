import { expect, it } from 'vitest';
import { guardedLog, isLog, type Log, SILENT_LOG } from './log.js';

it('tells loggers from other values', () => {
  expect(isLog(SILENT_LOG)).toBe(true);
  expect(isLog(console)).toBe(true);
  for (const other of [null, undefined, true, 'info', {}, { info: () => undefined }])
    expect(isLog(other)).toBe(false);
});

it('lets no failure of a logger out, whether it throws or rejects', async () => {
  const said: string[] = [];
  const broken = {
    debug: () => Promise.reject(new Error('no disk')),
    info: () => {
      throw new Error('no disk');
    },
    warn(this: { prefix: string }, _fields: unknown, message: string) {
      said.push(this.prefix + message);
    },
    error: () => undefined,
    prefix: '> ',
  };
  const log = guardedLog(broken as unknown as Log);
  log.debug({}, 'a');
  log.info({}, 'b');
  log.warn({}, 'c');
  await new Promise((resolve) => setImmediate(resolve));
  expect(said).toEqual(['> c']);
});
