import { describe, expect, it } from 'vitest';
import type { HttpTarget } from './job.js';
import { originOf, readOrigin, secretNamesIn } from './secret.js';

describe('an origin', () => {
  it.each([
    ['https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com/', 'https://api.example.com'],
    ['HTTPS://API.Example.COM:443', 'https://api.example.com'],
    ['http://api.example.com:80', 'http://api.example.com'],
    ['http://api.example.com:443', 'http://api.example.com:443'],
    ['https://api.example.com:8443', 'https://api.example.com:8443'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
    ['http://0x7f.1', 'http://127.0.0.1'],
  ])('%s has one spelling: %s', (text, origin) => expect(readOrigin(text)).toBe(origin));

  it.each([
    '*',
    'https://*',
    'https://*.example.com',
    'https://example.com/path',
    'https://example.com//',
    'https://example.com?x',
    'https://example.com#x',
    'https://user@example.com',
    'https://user:word@example.com',
    'https://',
    'https:example.com',
    'https:\\\\example.com',
    'https://example.com\\@evil.example',
    'ftp://example.com',
    'file:///etc/passwd',
    'example.com',
    'null',
    '',
    ' https://example.com',
    'https://exa\tmple.com',
    'https://example.com:99999',
  ])('is not %j', (text) => expect(readOrigin(text)).toBeNull());

  it('of a target is compared in the same spelling', () => {
    expect(originOf({ type: 'http', url: 'https://user:word@API.example.com:443/v1?x=1#y' })).toBe(
      'https://api.example.com',
    );
    // A name with a final dot is another name, as far as anybody who allowed an origin knows.
    expect(originOf({ type: 'http', url: 'https://api.example.com./' })).not.toBe('https://api.example.com');
  });

  it('may be the environment of programs', () => {
    expect(readOrigin('exec')).toBe('exec');
    expect(originOf({ type: 'exec', command: 'true' })).toBe('exec');
  });
});

describe('the secrets that a target refers to', () => {
  const call = (rest: Partial<HttpTarget>): HttpTarget => ({
    type: 'http',
    url: 'https://a.example',
    ...rest,
  });

  it('stand in headers and anywhere in the body', () => {
    const target = call({
      headers: { authorization: { $secret: 'one', prefix: 'Bearer ' }, 'x-plain': 'plain' },
      body: { list: [1, null, { deep: { $secret: 'two' } }], more: { $secret: 'three' } },
    });
    expect([...secretNamesIn(target)].sort()).toEqual(['one', 'three', 'two']);
    expect([...secretNamesIn(call({ body: { $secret: 'whole' } }))]).toEqual(['whole']);
  });

  it('are none without references, and none of other targets', () => {
    expect(secretNamesIn(call({ body: { $secret: 1 } })).size).toBe(0);
    expect(secretNamesIn(call({ headers: { 'x-name': '$secret' }, body: '{"$secret":"a"}' })).size).toBe(0);
    expect(secretNamesIn({ type: 'handler', name: 'a' }).size).toBe(0);
  });

  it('are found however deep they are', () => {
    let body: unknown = { $secret: 'deep' };
    for (let i = 0; i < 50_000; i++) body = [body];
    expect([...secretNamesIn(call({ body }))]).toEqual(['deep']);
  });
});
