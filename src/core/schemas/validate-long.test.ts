import { expect, it } from 'vitest';
import { turnsOf } from '../../../test/turns-of-the-loop.js';
import { uuidv7 } from '../uuid.js';
import { validate, validateLong } from './validate.js';
import { Heartbeat } from './worker.js';

const LISTS = ['running', 'refused'];
const list = (length: number) => Array.from({ length }, () => ({ jobId: uuidv7(Date.now()), fence: 1 }));

it('the longest heartbeat is checked in short turns', async () => {
  const heartbeat = { epoch: 1, running: list(100_000), refused: list(100_000) };
  const { count } = await turnsOf(() => validateLong(Heartbeat, heartbeat, LISTS));
  expect(count).toBeGreaterThan(2);
});

const WRONG: readonly (readonly [string, unknown])[] = [
  ['no object', 1],
  ['a wrong list', { epoch: 1, running: 'all' }],
  ['a wrong field beside a long list', { epoch: -1, running: list(5_000) }],
  ['an unknown field beside a long list', { epoch: 1, running: list(5_000), other: 1 }],
  ['a wrong item at the end', { epoch: 1, running: [...list(5_000), { jobId: 'x', fence: 1 }] }],
  ['a wrong item at the beginning', { epoch: 1, running: [1, ...list(5_000)] }],
  ['items without end that are all wrong', { epoch: 1, running: list(5_000).map(() => ({})) }],
  ['two wrong lists', { epoch: 1, running: [...list(2_000), 1], refused: [...list(2_000), 2] }],
  ['too many', { epoch: 1, running: list(100_001) }],
];

it.each(WRONG)('tells of a long list what it tells of a short one: %s', async (_, value) => {
  const expected = errorOf(() => validate(Heartbeat, value));
  await expect(validateLong(Heartbeat, value, LISTS)).rejects.toMatchObject(expected);
});

function errorOf(work: () => unknown): object {
  try {
    work();
  } catch (error) {
    const { code, errors } = error as { code: string; errors: unknown };
    return { code, errors };
  }
  throw new Error('nothing is wrong');
}
