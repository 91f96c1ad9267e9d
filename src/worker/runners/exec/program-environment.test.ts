import { describe, expect, it } from 'vitest';
import type { Assignment } from '../../../core/wire.js';
import { redactionOf } from './program-environment.js';

const ASSIGNMENT = { receiverToken: 'token-of-the-attempt' } as Assignment;

describe('what a program prints', () => {
  it('shows no secret and no token', () => {
    const redaction = redactionOf({ api: 'value-of-it' }, ASSIGNMENT);
    expect(redaction.text('a value-of-it b token-of-the-attempt')).toBe('a [secret api] b [token]');
  });

  it('shows no line of a secret that has several, because it is kept by the line', () => {
    const key =
      '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASC\n-----END PRIVATE KEY-----\n';
    const redaction = redactionOf({ key }, ASSIGNMENT);
    expect(redaction.text('MIIEvQIBADANBgkqhkiG9w0B')).toBe('[secret key]');
    expect(redaction.text(key)).toBe('[secret key]');
  });
});
