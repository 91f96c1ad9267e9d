import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { SILENT_LOG } from '../core/log.js';
import { makeKey } from '../store/api-keys.js';
import { Authentication } from './authentication.js';
import type { Caller, KeyIdentity } from './caller.js';

const SECRET = randomBytes(32);
const LOCAL_KEY = 'pk_local_x';

const ROW = {
  ...{ id: '1', name: 'ann', operator: true, tenant: null, scopes: [], queues: null, tasks: null },
  ...{ expiresAt: null as number | null, createdAt: 0, createdBy: null, lastUsedAt: Number.MAX_SAFE_INTEGER },
};
const ANN = { operator: true, name: 'ann', key: { id: '1', scopes: [], expiresAt: null } };

/** An authentication over a database that knows every key or none, and how often it was asked. */
function authentication(rows: readonly object[] = [ROW]) {
  const database = { rows: [...rows], version: 1 };
  const query = vi.fn(async ({ values }: { values: [Buffer[]] }) => {
    const { version } = database;
    const found = values[0].flatMap((hash) => database.rows.map((row) => ({ version, hash, ...row })));
    return { rows: found.length > 0 ? found : [{ version, hash: null }] };
  });
  const clock = new TestClock();
  const parts = { secret: SECRET, keys: { query }, clock, log: SILENT_LOG };
  const door = new Authentication(parts as never, LOCAL_KEY);
  onTestFinished(() => door.close());
  /** Changes what the database knows, as a revocation or a new key does. */
  const change = (changed: readonly object[]) => {
    database.rows = [...changed];
    database.version += 1;
  };
  /** How many keys each statement asked for. */
  const asked = () => query.mock.calls.map(([{ values }]) => values[0].length);
  return { query, door, change, asked, clock };
}

const now = performance.now.bind(performance);

/** Moves the time by which it is told how old something is to so much after the real one. */
function later(ms: number): void {
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
  onTestFinished(() => clock.mockRestore());
}

describe('a key', () => {
  it('that was never given out is refused without asking the database', async () => {
    const { door, query } = authentication();
    const genuine = makeKey(SECRET);
    const others = [
      makeKey(randomBytes(32)),
      makeKey(randomBytes(32), false),
      `${genuine.slice(0, -1)}${genuine.endsWith('A') ? 'B' : 'A'}`,
      genuine.slice(0, -1),
      `${genuine}A`,
      genuine.replace('pk_op_', 'pk_xx_'),
      // The prefix is sealed like the rest.
      genuine.replace('pk_op_', 'pk_tn_'),
      'pk_op_x',
      'pk_',
    ];
    for (const key of others) expect(await door.authenticate(key)).toBeNull();
    expect(query).not.toHaveBeenCalled();
  });

  it('is looked up once, however many requests come with it', async () => {
    const { door, query } = authentication();
    const key = makeKey(SECRET);
    const identities = await Promise.all(Array.from({ length: 20 }, () => door.authenticate(key)));
    for (const identity of identities) expect(identity).toEqual(ANN);
    expect(await door.authenticate(key)).toEqual(ANN);
    expect(query).toHaveBeenCalledTimes(1);
  });

  it('is looked up in one statement with others that come at the same moment', async () => {
    const { door, asked } = authentication();
    const keys = Array.from({ length: 20 }, () => makeKey(SECRET));
    await Promise.all(keys.map((key) => door.authenticate(key)));
    expect(asked().reduce((sum, count) => sum + count, 0)).toBe(20);
    expect(asked().length).toBeLessThanOrEqual(2);
  });

  it('of a tenant has its tenant, its scopes and its limits', async () => {
    const row = { ...ROW, operator: false, tenant: 'acme', scopes: ['read'], queues: ['a'], expiresAt: 9e15 };
    const { door } = authentication([row]);
    expect(await door.authenticate(makeKey(SECRET, false))).toEqual({
      ...{ operator: false, name: 'ann', tenant: 'acme' },
      key: { id: '1', scopes: ['read'], expiresAt: 9e15, limits: { queues: ['a'], tasks: null } },
    });
  });

  it('that was taken back is refused, and looked up once too', async () => {
    const { door, query } = authentication([]);
    const key = makeKey(SECRET);
    for (let i = 0; i < 5; i++) expect(await door.authenticate(key)).toBeNull();
    expect(query).toHaveBeenCalledTimes(1);
  });

  it('is looked up again after the database could not be asked', async () => {
    const { door, query } = authentication();
    query.mockRejectedValueOnce(new Error('gone'));
    const key = makeKey(SECRET);
    await expect(door.authenticate(key)).rejects.toThrow('gone');
    expect(await door.authenticate(key)).toEqual(ANN);
  });

  it('that is taken back is refused from a second later on', async () => {
    const { door, change } = authentication();
    const key = makeKey(SECRET);
    expect(await door.authenticate(key)).not.toBeNull();
    change([]);
    expect(await door.authenticate(key)).not.toBeNull();
    later(1_001);
    expect(await door.authenticate(key)).toBeNull();
  });

  it('that expires is refused at once, without asking the database', async () => {
    const { door, query, clock } = authentication([{ ...ROW, expiresAt: Date.now() + 10 * 86_400_000 }]);
    const key = makeKey(SECRET);
    expect(await door.authenticate(key)).not.toBeNull();
    clock.advance(11 * 86_400_000);
    expect(await door.authenticate(key)).toBeNull();
    expect(query).toHaveBeenCalledTimes(1);
  });

  it('is not read again while no key has changed; one number is, once a second for all keys', async () => {
    const { door, asked } = authentication();
    const keys = Array.from({ length: 50 }, () => makeKey(SECRET));
    await Promise.all(keys.map((key) => door.authenticate(key)));
    const before = asked().length;
    later(1_001);
    await Promise.all(keys.map((key) => door.authenticate(key)));
    expect(asked().slice(before)).toEqual([0]);
  });

  it('is read again once when some key has changed, together with others in use', async () => {
    const { door, asked, change } = authentication();
    const [unused, ...keys] = Array.from({ length: 21 }, () => makeKey(SECRET));
    await Promise.all([unused!, ...keys].map((key) => door.authenticate(key)));
    change([{ ...ROW, name: 'renamed' }]);
    later(1_001);
    const before = asked().length;
    const found = await Promise.all(keys.map((key) => door.authenticate(key)));
    expect(found.map((identity) => (identity as KeyIdentity).name)).toEqual(keys.map(() => 'renamed'));
    expect(asked().slice(before)).toEqual([0, 20]);
  });

  it('has the number read again behind the back of those who use it, before it is a second old', async () => {
    const { door, query } = authentication();
    const key = makeKey(SECRET);
    await door.authenticate(key);
    later(800);
    query.mockReturnValueOnce(new Promise(() => undefined));
    expect(await door.authenticate(key)).not.toBeNull();
    expect(query).toHaveBeenCalledTimes(2);
  });

  it('that is known is served for half a minute while the database cannot be asked', async () => {
    const { door, query } = authentication();
    const key = makeKey(SECRET);
    await door.authenticate(key);
    query.mockRejectedValue(new Error('gone'));
    later(29_000);
    expect(await door.authenticate(key)).toEqual(ANN);
    later(31_000);
    await expect(door.authenticate(key)).rejects.toThrow('gone');
  });

  it('is never served again after it was refused, whatever becomes of the database', async () => {
    const { door, query, change } = authentication();
    const key = makeKey(SECRET);
    await door.authenticate(key);
    change([]);
    later(1_001);
    expect(await door.authenticate(key)).toBeNull();
    query.mockRejectedValue(new Error('gone'));
    later(3_000);
    expect(await door.authenticate(key)).toBeNull();
  });

  it('is forgotten when 10,000 others were used since, and only that one', async () => {
    const { door, asked } = authentication();
    const kept = makeKey(SECRET);
    const forgotten = makeKey(SECRET);
    await door.authenticate(forgotten);
    await door.authenticate(kept);
    const others = Array.from({ length: 9_998 }, () => makeKey(SECRET));
    await Promise.all(others.map((key) => door.authenticate(key)));
    await door.authenticate(kept);
    await door.authenticate(makeKey(SECRET));
    const before = asked().reduce((sum, count) => sum + count, 0);
    await door.authenticate(kept);
    await door.authenticate(others.at(-1)!);
    expect(asked().reduce((sum, count) => sum + count, 0)).toBe(before);
    await door.authenticate(forgotten);
    expect(asked().reduce((sum, count) => sum + count, 0)).toBe(before + 1);
  });

  it('of this very process needs no database', async () => {
    const { door, query } = authentication([]);
    expect(await door.authenticate(LOCAL_KEY)).toMatchObject({ operator: true, name: 'embedded' });
    expect(query).not.toHaveBeenCalled();
  });
});

describe('whoever waits', () => {
  /** A caller that waits with a key, and the code of the error it is told. */
  async function waiting(door: Authentication) {
    const { key, name, operator } = (await door.authenticate(makeKey(SECRET))) as KeyIdentity;
    const caller: Caller = { tenant: 'acme', actor: name, operator, key: key! };
    const told = new Promise<string>((resolve) => {
      const unwatch = door.watch(caller, ({ code }) => resolve(code));
      onTestFinished(unwatch);
    });
    return { caller, told };
  }

  it('is told at once that the key was revoked when a node says so', async () => {
    const { door, change } = authentication();
    const { told, caller } = await waiting(door);
    expect(door.isValid(caller)).toBe(true);
    change([]);
    door.lookAgain();
    expect(await told).toBe('UNAUTHENTICATED');
    expect(door.isValid(caller)).toBe(false);
  });

  it('is given something only after its key was read again, as soon as it is known that some key has changed', async () => {
    const { door, change } = authentication();
    const { caller } = await waiting(door);
    change([ROW]);
    later(1_001);
    expect(door.isValid(caller)).toBe(true);
    await door.authenticate(makeKey(SECRET));
    const isValid = door.isValid(caller);
    expect(isValid).toBeInstanceOf(Promise);
    expect(await isValid).toBe(true);
    expect(door.isValid(caller)).toBe(true);
  });

  it('is given nothing if its key is gone when it is read again', async () => {
    const { door, change } = authentication();
    const { caller } = await waiting(door);
    change([]);
    later(1_001);
    await door.authenticate(makeKey(SECRET));
    expect(await door.isValid(caller)).toBe(false);
  });

  it('has its key read again together with those of all others, and once a second at most', async () => {
    const { door, change, asked } = authentication();
    const callers = await Promise.all(Array.from({ length: 50 }, () => waiting(door)));
    const before = asked().length;
    for (let i = 0; i < 100; i++) {
      change([ROW]);
      door.lookAgain();
      await door.authenticate(makeKey(SECRET));
      for (const { caller } of callers) expect(await door.isValid(caller)).toBe(true);
    }
    const many = asked()
      .slice(before)
      .filter((count) => count > 1);
    expect(many.length).toBeGreaterThan(0);
    expect(many.length).toBeLessThan(5);
    expect(many.every((count) => count >= 50)).toBe(true);
  });

  it('is told soon that the key was revoked when nobody says so', async () => {
    const { door, change } = authentication();
    const { told } = await waiting(door);
    change([]);
    later(3_001);
    expect(await told).toBe('UNAUTHENTICATED');
  });

  it('is told that the key has expired', async () => {
    const { door, clock } = authentication([{ ...ROW, expiresAt: Date.now() + 10 * 86_400_000 }]);
    const { told, caller } = await waiting(door);
    clock.advance(11 * 86_400_000);
    expect(door.isValid(caller)).toBe(false);
    expect(await told).toBe('UNAUTHENTICATED');
  });

  it('is told when the key could not be checked for half a minute', async () => {
    const { door, query } = authentication();
    const { told } = await waiting(door);
    query.mockRejectedValue(new Error('gone'));
    later(31_000);
    expect(await told).toBe('DATABASE_UNAVAILABLE');
  });
});

it('nothing is read while nobody asks or waits', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { door, query } = authentication();
  const identity = door.authenticate(makeKey(SECRET));
  await vi.advanceTimersByTimeAsync(1);
  const { key, name } = (await identity) as KeyIdentity;
  const unwatch = door.watch({ tenant: 'acme', actor: name, operator: true, key: key! }, () => undefined);
  await vi.advanceTimersByTimeAsync(15_000);
  unwatch();
  await vi.advanceTimersByTimeAsync(2_000);
  const before = query.mock.calls.length;
  expect(before).toBeGreaterThan(3);
  expect(before).toBeLessThan(8);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(query.mock.calls.length).toBe(before);
});
