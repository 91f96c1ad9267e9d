import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { resolveCredentials } from './credentials.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-credentials-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function store(content: unknown, data = '.punctual'): void {
  mkdirSync(join(folder, data), { recursive: true });
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(join(folder, data, 'credentials.json'), text);
}

const stored = { url: 'http://127.0.0.1:8080', apiKey: 'stored' };

describe('credentials', () => {
  it('come from what is given first, then the environment, then the data folder', () => {
    store(stored);
    const environment = { PUNCTUAL_URL: 'http://env:1', PUNCTUAL_API_KEY: 'env' };
    expect(resolveCredentials({ folder, environment: {} })).toEqual({ urls: [stored.url], apiKey: 'stored' });
    expect(resolveCredentials({ folder, environment })).toEqual({ urls: ['http://env:1'], apiKey: 'env' });
    expect(resolveCredentials({ folder, environment, url: 'http://given:1', apiKey: 'given' })).toEqual({
      urls: ['http://given:1'],
      apiKey: 'given',
    });
  });

  it('may name several nodes, in a list or separated by commas', () => {
    const wanted = { urls: ['http://a:1', 'http://b:2'], apiKey: 'k' };
    expect(
      resolveCredentials({ folder, environment: {}, url: 'http://a:1, http://b:2', apiKey: 'k' }),
    ).toEqual(wanted);
    expect(resolveCredentials({ folder, environment: {}, url: wanted.urls, apiKey: 'k' })).toEqual(wanted);
  });

  it('may be kept in files of their own', () => {
    writeFileSync(join(folder, 'key'), 'from-file\n');
    const environment = { PUNCTUAL_URL: 'http://a:1', PUNCTUAL_API_KEY_FILE: 'key' };
    expect(resolveCredentials({ folder, environment }).apiKey).toBe('from-file');
    expect(() =>
      resolveCredentials({ folder, environment: { ...environment, PUNCTUAL_API_KEY_FILE: 'no' } }),
    ).toThrow(/PUNCTUAL_API_KEY_FILE cannot be read/);
  });

  it('are looked for where PUNCTUAL_DATA says', () => {
    store(stored, 'elsewhere');
    expect(resolveCredentials({ folder, environment: { PUNCTUAL_DATA: 'elsewhere' } }).apiKey).toBe('stored');
  });

  it('found in a file are sent to other ports of the same host, but to no other host', () => {
    store(stored);
    expect(resolveCredentials({ folder, environment: {}, url: 'http://localhost:8082' }).apiKey).toBe(
      'stored',
    );
    expect(() =>
      resolveCredentials({ folder, environment: {}, url: 'http://localhost:8082,https://example.com' }),
    ).toThrow(/No key is known/);
  });

  it('come from a profile that is named, else from the folder, else from the default profile', () => {
    const home = join(folder, 'home');
    const path = join(home, '.config', 'punctual', 'profiles.json');
    mkdirSync(join(home, '.config', 'punctual'), { recursive: true });
    const profile = (name: string) => ({ url: `http://${name}-1:1,http://${name}-2:1`, apiKey: name });
    writeFileSync(path, JSON.stringify({ profiles: { default: profile('own'), work: profile('work') } }));
    const environment = { HOME: home };
    const found = (more: object, variables: object = {}) =>
      resolveCredentials({ folder, environment: { ...environment, ...variables }, ...more }).apiKey;
    expect(resolveCredentials({ folder, environment })).toEqual({
      urls: ['http://own-1:1', 'http://own-2:1'],
      apiKey: 'own',
    });
    expect(found({ profile: 'work' })).toBe('work');
    expect(found({}, { PUNCTUAL_PROFILE: 'work' })).toBe('work');
    const variables = { PUNCTUAL_URL: 'http://env:1', PUNCTUAL_API_KEY: 'env', PUNCTUAL_PROFILE: 'work' };
    expect(found({}, variables)).toBe('env');
    expect(found({ profile: 'default' }, variables)).toBe('own');
    expect(() => found({ profile: 'none' })).toThrow(/There is no profile none.*punctual login/);
    // The key of a profile goes to no other host.
    expect(() => found({ profile: 'work', url: 'http://elsewhere:1' })).toThrow(/No key is known/);
    store(stored);
    expect(found({})).toBe('stored');
  });

  it('with an address that lacks its scheme are refused as that, whether or not there is a key', () => {
    const resolve = (url: string) => resolveCredentials({ folder, environment: {}, url });
    expect(() => resolve('localhost:8080')).toThrow('"localhost:8080" is not the address of a node');
    expect(() => resolve('http://a:1,node-2')).toThrow('"node-2" is not the address of a node');
  });

  it('that are not set are no mistake in a setting', () => {
    for (const more of [{}, { url: 'http://a:1' }, { profile: 'none' }]) {
      const find = () => resolveCredentials({ folder, environment: { HOME: folder }, ...more });
      expect(find).toThrow(expect.objectContaining({ code: 'CONFIGURATION', hint: null }));
    }
  });

  it('that are nowhere, or in a broken file, are an error that says what to do', () => {
    expect(() => resolveCredentials({ folder, environment: {} })).toThrow(/punctual up.*PUNCTUAL_URL/);
    store('{broken');
    expect(() => resolveCredentials({ folder, environment: {} })).toThrow(
      /does not hold an address and a key/,
    );
  });
});
