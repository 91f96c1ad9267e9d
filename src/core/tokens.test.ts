import { createHmac, type KeyObject, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { jwtVerify, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import {
  generationAt,
  isForwarded,
  signAttemptToken,
  signCallerToken,
  signForwarded,
  signNodeToken,
  tokenKey,
  verifyAttemptToken,
  verifyCallerToken,
  verifyNodeToken,
} from './tokens.js';

const secret = randomBytes(32);
const NOW = Date.UTC(2026, 0, 1);
const claims = { tenant: 'acme', jobId: '0190f5e2-0000-7000-8000-000000000001', fence: 3 };
const token = signAttemptToken(secret, claims, NOW + 60_000, NOW);
const DAY_MS = 86_400_000;

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const [head, body, signature] = token.split('.') as [string, string, string];

describe('the token of an attempt', () => {
  it('names its tenant, job and fence', () => {
    expect(verifyAttemptToken(secret, token, NOW)).toEqual(claims);
  });

  it('says what the key of its worker is restricted to', () => {
    const limited = { ...claims, limits: { queues: ['mail'], tasks: null } };
    const signed = signAttemptToken(secret, limited, NOW + 60_000, NOW);
    expect(verifyAttemptToken(secret, signed, NOW)).toEqual(limited);
  });

  it('keeps any tenant, job and fence as they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.uuid(), fc.nat(2 ** 31 - 1), (tenant, jobId, fence) => {
        const signed = signAttemptToken(secret, { tenant, jobId, fence }, NOW, NOW);
        expect(verifyAttemptToken(secret, signed, NOW)).toEqual({ tenant, jobId, fence });
        expect(signed).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
      }),
    );
  });

  it('lasts until its expiry, rounded up to a second', () => {
    expect(verifyAttemptToken(secret, token, NOW + 60_000)).toEqual(claims);
    expect(verifyAttemptToken(secret, token, NOW + 60_001)).toBeNull();
    const short = signAttemptToken(secret, claims, NOW + 1, NOW);
    expect(verifyAttemptToken(secret, short, NOW + 1_000)).toEqual(claims);
  });

  it('is refused under another secret', () => {
    expect(verifyAttemptToken(randomBytes(32), token, NOW)).toBeNull();
  });

  it('is refused with any character changed', () => {
    for (let i = 0; i < token.length; i++) {
      const changed = `${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`;
      const read = verifyAttemptToken(secret, changed, NOW);
      // The last character of a base64url text has bits to spare, which change nothing that it says.
      if (i < token.length - 1) expect(read).toBeNull();
      else expect(read === null || read.fence === claims.fence).toBe(true);
    }
  });

  it('is refused with other claims under the same signature', () => {
    const forged = encode({ aud: 'punctual:attempt', ten: 'acme', job: claims.jobId, fence: 4, exp: 1e12 });
    expect(verifyAttemptToken(secret, `${head}.${forged}.${signature}`, NOW)).toBeNull();
  });

  it('is refused when it chooses its own algorithm', () => {
    const none = encode({ alg: 'none', typ: 'JWT' });
    expect(verifyAttemptToken(secret, `${none}.${body}.`, NOW)).toBeNull();
    expect(verifyAttemptToken(secret, `${none}.${body}.${signature}`, NOW)).toBeNull();
    const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString());
    const { key } = tokenKey(secret, 'attempt', generationAt(NOW));
    const other = `${encode({ alg: 'HS512', typ: 'JWT', kid })}.${body}`;
    const signed = createHmac('sha512', key).update(other).digest('base64url');
    expect(verifyAttemptToken(secret, `${other}.${signed}`, NOW)).toBeNull();
  });

  it('is refused when it was signed for another purpose, or with the secret itself', () => {
    const sign = (text: string, key: KeyObject | Buffer) =>
      `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
    const { key } = tokenKey(secret, 'attempt', generationAt(NOW));
    const node = tokenKey(secret, 'node', generationAt(NOW)).key;
    const own = `${head}.${body}`;
    expect(verifyAttemptToken(secret, sign(own, key), NOW)).toEqual(claims);
    expect(verifyAttemptToken(secret, sign(own, node), NOW)).toBeNull();
    expect(verifyAttemptToken(secret, sign(own, secret), NOW)).toBeNull();
    const elsewhere = `${head}.${encode({ aud: 'other', exp: 1e12 })}`;
    expect(verifyAttemptToken(secret, sign(elsewhere, key), NOW)).toBeNull();
    const noJson = `${head}.${Buffer.from('no json').toString('base64url')}`;
    expect(verifyAttemptToken(secret, sign(noJson, key), NOW)).toBeNull();
  });

  it('is valid in the generation of its key and the next, and then no more', () => {
    const long = signAttemptToken(secret, claims, NOW + 100 * DAY_MS, NOW);
    expect(verifyAttemptToken(secret, long, NOW + 30 * DAY_MS)).toEqual(claims);
    expect(verifyAttemptToken(secret, long, NOW + 60 * DAY_MS)).toBeNull();
  });

  it('is not made of anything else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\w-]*\.[\w-]*\.[\w-]*$/)), (text) => {
        expect(verifyAttemptToken(secret, text, NOW)).toBeNull();
      }),
    );
    expect(verifyAttemptToken(secret, `${token}.`, NOW)).toBeNull();
    expect(verifyAttemptToken(secret, `${head}.${body}`, NOW)).toBeNull();
  });
});

describe('tokens between nodes', () => {
  const identity = { operator: false, name: 'shop', tenant: 'acme', key: { id: '1', scopes: ['read'] } };
  const tokens = {
    attempt: token,
    node: signNodeToken(secret, 'n1', NOW),
    caller: signCallerToken(secret, 'n1', identity, NOW),
    forwarded: signForwarded(secret, 'n1', NOW),
  };

  it('say what they were signed for, and nothing else', () => {
    const read = Object.values(tokens).map((each) => [
      verifyAttemptToken(secret, each, NOW),
      verifyNodeToken(secret, each, NOW),
      verifyCallerToken(secret, each, NOW),
      isForwarded(secret, each, NOW),
    ]);
    expect(read).toEqual([
      [claims, null, null, false],
      [null, { nodeId: 'n1' }, null, false],
      [null, null, identity, false],
      [null, null, null, true],
    ]);
  });

  it('last a minute', () => {
    expect(verifyCallerToken(secret, tokens.caller, NOW + 60_000)).toEqual(identity);
    expect(verifyCallerToken(secret, tokens.caller, NOW + 60_001)).toBeNull();
  });
});

describe('for another library, the token of an attempt', () => {
  const currentDate = new Date(NOW);
  const { key } = tokenKey(secret, 'attempt', generationAt(NOW));
  const expected = { algorithms: ['HS256'], audience: 'punctual:attempt', currentDate };

  it('is a JWT like any other', async () => {
    const { payload, protectedHeader } = await jwtVerify(token, key, expected);
    expect(payload).toEqual({
      ...{ aud: 'punctual:attempt', ten: 'acme', job: claims.jobId, fence: 3 },
      exp: NOW / 1_000 + 60,
    });
    expect(protectedHeader).toEqual({ alg: 'HS256', typ: 'JWT', kid: `attempt-${generationAt(NOW)}` });
  });

  it('is refused like any other', async () => {
    const late = { ...expected, currentDate: new Date(NOW + 120_000) };
    await expect(jwtVerify(token, key, late)).rejects.toThrow('"exp"');
    const elsewhere = { ...expected, audience: 'punctual:node' };
    await expect(jwtVerify(token, key, elsewhere)).rejects.toThrow('"aud"');
    const other = tokenKey(secret, 'node', generationAt(NOW)).key;
    await expect(jwtVerify(token, other, expected)).rejects.toThrow('signature');
  });

  it('that it has signed with our key is taken, if its header is ours', async () => {
    const sign = (header: { alg: string; typ?: string; kid?: string }) =>
      new SignJWT({ ten: 'acme', job: claims.jobId, fence: 3 })
        .setProtectedHeader(header)
        .setAudience('punctual:attempt')
        .setExpirationTime(NOW / 1_000 + 60)
        .sign(key);
    const kid = `attempt-${generationAt(NOW)}`;
    expect(verifyAttemptToken(secret, await sign({ alg: 'HS256', typ: 'JWT', kid }), NOW)).toEqual(claims);
    expect(verifyAttemptToken(secret, await sign({ alg: 'HS256' }), NOW)).toBeNull();
  });
});
