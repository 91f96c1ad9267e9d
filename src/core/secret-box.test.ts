import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MissingMasterKey, makeMasterKey, readMasterKeys, SecretBox } from './secret-box.js';

const KEY = randomBytes(32);
const box = new SecretBox([KEY]);

const text = fc.string({ unit: 'grapheme', maxLength: 200 });
const subject = fc.record({
  kind: fc.constantFrom('secret' as const, 'signing-secret' as const),
  tenant: text,
  name: text,
  version: fc.nat(),
});

describe('a sealed value', () => {
  it('is opened as it was, with everything that it belongs to', () => {
    fc.assert(
      fc.property(text, subject, (value, of) => {
        const sealed = box.seal(value, of);
        expect(box.open(sealed, of)).toBe(value);
        if (Buffer.byteLength(value) > 3) expect(sealed.sealed.includes(Buffer.from(value))).toBe(false);
      }),
    );
  });

  it('cannot be opened as that of any other kind, tenant, name or version', () => {
    fc.assert(
      fc.property(text, subject, subject, (value, of, other) => {
        fc.pre(JSON.stringify(of) !== JSON.stringify(other));
        expect(() => box.open(box.seal(value, of), other)).toThrow();
      }),
    );
  });

  it('cannot be opened as if the border between tenant and name were elsewhere', () => {
    const common = { kind: 'secret', version: 1 } as const;
    const sealed = box.seal('value', { ...common, tenant: 'a","b', name: 'c' });
    expect(() => box.open(sealed, { ...common, tenant: 'a', name: 'b","c' })).toThrow();
    const digits = box.seal('value', { ...common, tenant: 'a', name: 'b', version: 11 });
    expect(() => box.open(digits, { ...common, tenant: 'a', name: 'b1', version: 1 })).toThrow();
  });

  it('cannot be opened when any of its bytes was changed, removed or added', () => {
    fc.assert(
      fc.property(text, subject, fc.nat(), fc.integer({ min: 1, max: 255 }), (value, of, at, change) => {
        const { keyId, sealed } = box.seal(value, of);
        const changed = Buffer.from(sealed);
        changed[at % sealed.length]! ^= change;
        expect(() => box.open({ keyId, sealed: changed }, of)).toThrow();
        expect(() => box.open({ keyId, sealed: sealed.subarray(0, at % sealed.length) }, of)).toThrow();
        expect(() => box.open({ keyId, sealed: Buffer.concat([sealed, Buffer.of(change)]) }, of)).toThrow();
      }),
    );
  });

  it('looks different each time, so that nobody sees whether a value is the same', () => {
    const of = { kind: 'secret', tenant: 'acme', name: 'a', version: 1 } as const;
    expect(box.seal('value', of).sealed.equals(box.seal('value', of).sealed)).toBe(false);
  });
});

describe('several master keys', () => {
  const of = { kind: 'secret', tenant: 'acme', name: 'a', version: 1 } as const;
  const next = randomBytes(32);

  it('all open, and the first one seals', () => {
    const both = new SecretBox([next, KEY]);
    expect(both.keyIds).toEqual([both.keyId, box.keyId]);
    expect(both.open(box.seal('old', of), of)).toBe('old');
    const sealed = both.seal('new', of);
    expect(sealed.keyId).toBe(new SecretBox([next]).keyId);
    expect(new SecretBox([KEY, next]).open(sealed, of)).toBe('new');
  });

  it('say which one is missing', () => {
    const opening = () => new SecretBox([next]).open(box.seal('old', of), of);
    expect(opening).toThrow(MissingMasterKey);
    expect(opening).toThrow(box.keyId);
  });

  it('are not mixed up: the id of another key does not help', () => {
    const { sealed } = box.seal('old', of);
    const both = new SecretBox([next, KEY]);
    expect(() => both.open({ keyId: both.keyId, sealed }, of)).toThrow();
  });
});

describe('the setting of master keys', () => {
  it('takes base64 of both alphabets, padded or not, and hexadecimal digits', () => {
    for (let i = 0; i < 50; i++) {
      const key = randomBytes(32);
      const forms = [key.toString('base64'), key.toString('base64url'), key.toString('hex')];
      for (const form of [...forms, key.toString('hex').toUpperCase()]) {
        expect(readMasterKeys(form)).toEqual([key]);
      }
    }
    expect(readMasterKeys(makeMasterKey())).toHaveLength(1);
  });

  it('takes several with commas between them', () => {
    const keys = [randomBytes(32), randomBytes(32)];
    expect(readMasterKeys(keys.map((key) => key.toString('base64')).join(' , '))).toEqual(keys);
  });

  it.each([
    '',
    'secret',
    'x'.repeat(44),
    randomBytes(31).toString('base64'),
    randomBytes(33).toString('hex'),
    ',',
  ])('refuses anything else: %s', (wrong) => expect(readMasterKeys(wrong)).toBeNull());

  it('refuses a right one beside a wrong one', () => {
    expect(readMasterKeys(`${makeMasterKey()},`)).toBeNull();
    expect(readMasterKeys(`${makeMasterKey()},nonsense`)).toBeNull();
  });
});
