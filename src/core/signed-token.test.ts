import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { hmac } from './signed-token.js';

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
