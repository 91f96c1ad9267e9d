import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { makeKey } from '../store/operator-key.js';
import { Authentication } from './authentication.js';

const SECRET = randomBytes(32);
const LOCAL_KEY = 'pk_local_x';

/** An authentication over a database that knows every key or none, and how often it was asked. */
function authentication(rows: readonly object[]) {
  const query = vi.fn(async ({ values }: { values: [Buffer[]] }) => ({
    rows: values[0].flatMap((hash) => rows.map((row) => ({ ...row, hash }))),
  }));
  const parts = { secret: SECRET, keys: { query }, clock: new TestClock() };
  return { query, authentication: new Authentication(parts as never, LOCAL_KEY) };
}

const now = performance.now.bind(performance);

/** Moves the time by which it is told how old something is to so much after the real one. */
function later(ms: number): void {
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
  onTestFinished(() => clock.mockRestore());
}

const ROW = { id: '1', name: 'ann', operator: true };

describe('a key', () => {
  it('that was never given out is refused without asking the database', async () => {
    const { authentication: door, query } = authentication([ROW]);
    const genuine = makeKey(SECRET);
    const others = [
      makeKey(randomBytes(32)),
      `${genuine.slice(0, -1)}${genuine.endsWith('A') ? 'B' : 'A'}`,
      genuine.slice(0, -1),
      `${genuine}A`,
      genuine.replace('pk_op_', 'pk_xx_'),
      'pk_op_x',
      'pk_',
    ];
    for (const key of others) expect(await door.authenticate(key)).toBeNull();
    expect(query).not.toHaveBeenCalled();
  });

  it('is looked up once, however many requests come with it', async () => {
    const { authentication: door, query } = authentication([ROW]);
    const key = makeKey(SECRET);
    const identities = await Promise.all(Array.from({ length: 20 }, () => door.authenticate(key)));
    for (const identity of identities) expect(identity).toEqual({ operator: true, name: 'ann' });
    expect(await door.authenticate(key)).toEqual({ operator: true, name: 'ann' });
    expect(query).toHaveBeenCalledTimes(1);
  });

  it('that was taken back is refused, and looked up once too', async () => {
    const { authentication: door, query } = authentication([]);
    const key = makeKey(SECRET);
    for (let i = 0; i < 5; i++) expect(await door.authenticate(key)).toBeNull();
    expect(query).toHaveBeenCalledTimes(1);
  });

  it('is looked up again after the database could not be asked', async () => {
    const { authentication: door, query } = authentication([ROW]);
    query.mockRejectedValueOnce(new Error('gone'));
    const key = makeKey(SECRET);
    await expect(door.authenticate(key)).rejects.toThrow('gone');
    expect(await door.authenticate(key)).toEqual({ operator: true, name: 'ann' });
  });

  it('that is taken back is refused from a second later on', async () => {
    const rows: object[] = [ROW];
    const { authentication: door } = authentication(rows);
    const key = makeKey(SECRET);
    expect(await door.authenticate(key)).not.toBeNull();
    rows.length = 0;
    expect(await door.authenticate(key)).not.toBeNull();
    later(1_001);
    expect(await door.authenticate(key)).toBeNull();
  });

  it('is looked up again with all others that are in use, in one statement, and with none that are not', async () => {
    const { authentication: door, query } = authentication([ROW]);
    const [unused, ...keys] = Array.from({ length: 21 }, () => makeKey(SECRET));
    for (const key of [unused!, ...keys]) await door.authenticate(key);
    for (const key of keys) await door.authenticate(key);
    later(1_001);
    await Promise.all(keys.map((key) => door.authenticate(key)));
    expect(query).toHaveBeenCalledTimes(22);
    expect(query.mock.lastCall![0].values[0]).toHaveLength(20);
    await door.authenticate(unused!);
    expect(query).toHaveBeenCalledTimes(23);
  });

  it('is looked up again behind the back of those who use it, before it is a second old', async () => {
    const { authentication: door, query } = authentication([ROW]);
    const key = makeKey(SECRET);
    await door.authenticate(key);
    later(800);
    query.mockReturnValueOnce(new Promise(() => undefined));
    expect(await door.authenticate(key)).not.toBeNull();
    expect(query).toHaveBeenCalledTimes(2);
  });

  it('that is known is served for half a minute while the database cannot be asked', async () => {
    const { authentication: door, query } = authentication([ROW]);
    const key = makeKey(SECRET);
    await door.authenticate(key);
    query.mockRejectedValue(new Error('gone'));
    later(29_000);
    expect(await door.authenticate(key)).toEqual({ operator: true, name: 'ann' });
    later(31_000);
    await expect(door.authenticate(key)).rejects.toThrow('gone');
  });

  it('of this very process needs no database', async () => {
    const { authentication: door, query } = authentication([]);
    expect(await door.authenticate(LOCAL_KEY)).toMatchObject({ operator: true, name: 'embedded' });
    expect(query).not.toHaveBeenCalled();
  });
});
