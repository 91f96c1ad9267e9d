import { createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hmac, signAttemptToken, verifyAttemptToken } from './tokens.js';

const secret = randomBytes(32);
const NOW = Date.UTC(2026, 0, 1);
const claims = { tenant: 'acme', jobId: '0190f5e2-0000-7000-8000-000000000001', fence: 3 };
const token = signAttemptToken(secret, claims, NOW + 60_000);

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const [head, body, signature] = token.split('.') as [string, string, string];

describe('the token of an attempt', () => {
  it('names its tenant, job and fence', () => {
    expect(verifyAttemptToken(secret, token, NOW)).toEqual(claims);
  });

  it('keeps any tenant, job and fence as they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.uuid(), fc.nat(2 ** 31 - 1), (tenant, jobId, fence) => {
        const signed = signAttemptToken(secret, { tenant, jobId, fence }, NOW);
        expect(verifyAttemptToken(secret, signed, NOW)).toEqual({ tenant, jobId, fence });
        expect(signed).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
      }),
    );
  });

  it('lasts until its expiry, rounded up to a second', () => {
    expect(verifyAttemptToken(secret, token, NOW + 60_000)).toEqual(claims);
    expect(verifyAttemptToken(secret, token, NOW + 60_001)).toBeNull();
    expect(verifyAttemptToken(secret, signAttemptToken(secret, claims, NOW + 1), NOW + 1_000)).toEqual(
      claims,
    );
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
    const other = `${encode({ alg: 'HS512', typ: 'JWT' })}.${body}`;
    const signed = createHmac('sha512', secret).update('attempt\n').update(other).digest('base64url');
    expect(verifyAttemptToken(secret, `${other}.${signed}`, NOW)).toBeNull();
  });

  it('is refused when it was signed with the same secret for another purpose', () => {
    const sign = (text: string, purpose: string) =>
      createHmac('sha256', secret).update(purpose).update(text).digest('base64url');
    const own = `${head}.${body}`;
    expect(verifyAttemptToken(secret, `${own}.${sign(own, '')}`, NOW)).toBeNull();
    const elsewhere = `${head}.${encode({ aud: 'other', exp: 1e12 })}`;
    expect(verifyAttemptToken(secret, `${elsewhere}.${sign(elsewhere, 'attempt\n')}`, NOW)).toBeNull();
    const noJson = `${head}.${Buffer.from('no json').toString('base64url')}`;
    expect(verifyAttemptToken(secret, `${noJson}.${sign(noJson, 'attempt\n')}`, NOW)).toBeNull();
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
it('signs like the HMAC of Node, whatever the secret and the message', () => {
  const secrets = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(secrets, fc.array(fc.string({ unit: 'binary' })), (secret, messages) => {
      for (const message of messages) {
        expect(hmac(secret, message)).toBe(createHmac('sha256', secret).update(message).digest('base64url'));
      }
    }),
  );
});
