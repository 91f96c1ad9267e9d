import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signWebhook, verifyWebhook, WebhookError } from './webhook.js';

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
const nowSeconds = () => Math.floor(Date.now() / 1_000);

function headersOf(id: string, timestamp: number, body: string, secrets: readonly string[]) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook({ id, timestamp, body }, secrets),
  };
}

describe('a signature', () => {
  const body = '{"id":7,"name":"Ä 🎉"}';

  it('is accepted by the reference implementation, with each of the secrets that are valid', () => {
    const secrets = [newSecret(), newSecret()];
    const headers = headersOf('job-1', nowSeconds(), body, secrets);
    for (const secret of secrets) expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => new Webhook(newSecret()).verify(body, headers)).toThrow();
  });

  it('of the reference implementation is accepted', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.uuid(), (text, id) => {
        const secret = newSecret();
        const at = new Date(nowSeconds() * 1_000);
        const headers = {
          'webhook-id': id,
          'webhook-timestamp': String(at.getTime() / 1_000),
          'webhook-signature': new Webhook(secret).sign(id, at, text),
        };
        expect(verifyWebhook(headers, text, [newSecret(), secret])).toEqual({ id, timestamp: at });
      }),
      { numRuns: 50 },
    );
  });

  it('is the one of the reference implementation', () => {
    const secret = newSecret();
    const timestamp = nowSeconds();
    const theirs = new Webhook(secret).sign('a', new Date(timestamp * 1_000), body);
    expect(signWebhook({ id: 'a', timestamp, body }, [secret])).toBe(theirs);
  });

  it('is checked on bytes, and on the headers of the web', () => {
    const secret = newSecret();
    const headers = new Headers(headersOf('a', nowSeconds(), body, [secret]));
    expect(verifyWebhook(headers, Buffer.from(body), secret).id).toBe('a');
  });

  it.each<[string, { body?: string; headers?: Record<string, string | undefined> }]>([
    ['another body', { body: `${body} ` }],
    ['another id', { headers: { 'webhook-id': 'b' } }],
    ['another time', { headers: { 'webhook-timestamp': String(nowSeconds() - 1) } }],
    ['no time', { headers: { 'webhook-timestamp': 'yesterday' } }],
    ['no id', { headers: { 'webhook-id': undefined } }],
    ['an empty signature', { headers: { 'webhook-signature': '' } }],
    ['a signature of no length', { headers: { 'webhook-signature': 'v1,' } }],
    ['a signature of another version', { headers: { 'webhook-signature': 'v2,AAAA' } }],
  ])('does not fit %s', (_, { body: changed = body, headers = {} }) => {
    const secret = newSecret();
    const given = { ...headersOf('a', nowSeconds(), body, [secret]), ...headers };
    expect(() => verifyWebhook(given, changed, secret)).toThrow(WebhookError);
  });

  it('that is old or from the future is refused, by the tolerance that is given', () => {
    const secret = newSecret();
    const at = (seconds: number) => headersOf('a', nowSeconds() + seconds, body, [secret]);
    expect(() => verifyWebhook(at(-301), body, secret)).toThrow('too old');
    expect(() => verifyWebhook(at(302), body, secret)).toThrow('in the future');
    expect(verifyWebhook(at(-301), body, secret, { toleranceSeconds: 600 }).id).toBe('a');
    expect(() => verifyWebhook(at(-5), body, secret, { toleranceSeconds: 1 })).toThrow(WebhookError);
  });
});
