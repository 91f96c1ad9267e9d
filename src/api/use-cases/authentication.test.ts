import { randomBytes } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { makeKey } from '../../store/operator-key.js';
import type { NodeContext } from '../context.js';
import { Authentication } from './authentication.js';

const SECRET = randomBytes(32);
const LOCAL_KEY = 'pk_local_x';

/** An authentication over a database that knows every key or none, and how often it was asked. */
function authentication(rows: readonly object[]) {
  const query = vi.fn(async () => ({ rows }));
  const context = { secret: SECRET, keys: { query } } as unknown as NodeContext;
  return { query, authentication: new Authentication(context, LOCAL_KEY) };
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

  it('of this very process needs no database', async () => {
    const { authentication: door, query } = authentication([]);
    expect(await door.authenticate(LOCAL_KEY)).toMatchObject({ operator: true, name: 'embedded' });
    expect(query).not.toHaveBeenCalled();
  });
});
