import { describe, expect, it } from 'vitest';
import { environmentName, resolveConfig, SETTINGS, type SettingName, unknownVariables } from './config.js';
import { PunctualError } from './errors.js';

const noFile = (path: string): string => expect.unreachable(`no file was to be read, but ${path} was`);
const NAMES = Object.keys(SETTINGS) as SettingName[];

function configurationError(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(PunctualError);
    expect((error as PunctualError).code).toBe('CONFIGURATION');
    return (error as PunctualError).message;
  }
  return expect.unreachable('the configuration was accepted');
}

describe('the configuration', () => {
  it('has a valid default for every setting', () => {
    const { config, sources } = resolveConfig({}, {}, noFile);
    for (const name of NAMES) {
      expect(config[name]).toBe(SETTINGS[name].default);
      expect(sources[name]).toBe('default');
      expect(resolveConfig({ [name]: config[name] }, {}, noFile).config[name]).toBe(config[name]);
    }
  });

  it('promises what the contract says', () => {
    const { config } = resolveConfig({}, {}, noFile);
    expect(config).toMatchObject({
      leaseTtl: 5_000,
      heartbeatInterval: 3_000,
      workerTimeout: 10_000,
      jobTimeout: 1_200_000,
      maxPayload: 262_144,
      maxError: 16_384,
      maxLog: 1_048_576,
      maxBulkJobs: 10_000,
      maxBulkBytes: 16_777_216,
      port: 8_080,
    });
  });

  it('takes master keys of 32 bytes, from a file too, and quotes no wrong one', () => {
    const [hex, base64] = ['ab'.repeat(32), Buffer.alloc(32, 7).toString('base64')];
    const both = `${base64}, ${hex}`;
    expect(resolveConfig({}, { PUNCTUAL_SECRET_KEY: both }, noFile).config.secretKey).toBe(both);
    const read = () => `${hex}\n`;
    expect(resolveConfig({}, { PUNCTUAL_SECRET_KEY_FILE: '/key' }, read).config.secretKey).toBe(hex);
    for (const wrong of ['hunter2', hex.slice(2), `${base64},hunter2`, `${hex},`]) {
      const message = configurationError(() => resolveConfig({}, { PUNCTUAL_SECRET_KEY: wrong }, noFile));
      expect(message).toMatch(/^PUNCTUAL_SECRET_KEY: expected 32 bytes/);
      expect(message).not.toMatch(/hunter2|abab/);
    }
  });

  it('has one environment variable per setting, named after it', () => {
    expect(environmentName('leaseTtl')).toBe('PUNCTUAL_LEASE_TTL');
    expect(environmentName('databaseUrl')).toBe('PUNCTUAL_DATABASE_URL');
    expect(environmentName('maxBulkBytes')).toBe('PUNCTUAL_MAX_BULK_BYTES');
    expect(environmentName('url')).toBe('PUNCTUAL_URL');
    expect(new Set(NAMES.map(environmentName)).size).toBe(NAMES.length);
    for (const name of NAMES) expect(SETTINGS[name].description).toMatch(/\.$/);
  });

  it('prefers flags to the environment, that to a file, and that to the default', () => {
    const environment = {
      PUNCTUAL_API_KEY: 'from the environment',
      PUNCTUAL_API_KEY_FILE: '/key',
      PUNCTUAL_LEASE_TTL: '7s',
    };
    const read = (path: string) => `from ${path}\n`;
    const flags = resolveConfig({ apiKey: 'from a flag', leaseTtl: undefined }, environment, noFile);
    expect([flags.config.apiKey, flags.sources.apiKey]).toEqual(['from a flag', 'flag']);
    expect([flags.config.leaseTtl, flags.sources.leaseTtl]).toEqual([7_000, 'PUNCTUAL_LEASE_TTL']);
    const variables = resolveConfig({}, environment, noFile);
    expect([variables.config.apiKey, variables.sources.apiKey]).toEqual([
      'from the environment',
      'PUNCTUAL_API_KEY',
    ]);
    const files = resolveConfig({}, { ...environment, PUNCTUAL_API_KEY: '' }, read);
    expect([files.config.apiKey, files.sources.apiKey]).toEqual(['from /key', 'PUNCTUAL_API_KEY_FILE']);
    expect(resolveConfig({}, { PUNCTUAL_API_KEY: '' }, noFile).sources.apiKey).toBe('default');
  });

  it('reads durations, numbers and switches as people write them', () => {
    const { config } = resolveConfig(
      { leaseTtl: '1.5s', workerTimeout: 20_000, port: '0', hints: 'false', host: '::1', maxDepth: 4 },
      { PUNCTUAL_HISTORY_RETENTION: '2d', PUNCTUAL_MAX_LOG: ' 10 ' },
      noFile,
    );
    expect(config).toMatchObject({
      leaseTtl: 1_500,
      workerTimeout: 20_000,
      port: 0,
      hints: false,
      host: '::1',
      maxDepth: 4,
      historyRetention: 172_800_000,
      maxLog: 10,
    });
    for (const on of [true, 'true', '1'])
      expect(resolveConfig({ hints: on }, {}, noFile).config.hints).toBe(true);
    for (const off of [false, 'false', '0']) {
      expect(resolveConfig({ hints: off }, {}, noFile).config.hints).toBe(false);
    }
  });

  it.each([
    [{ leaseTtl: 'soon' }, 'leaseTtl: expected a duration such as 5s, got "soon".'],
    [{ leaseTtl: '5' }, 'leaseTtl: expected a duration such as 5s, got "5".'],
    [{ leaseTtl: '1ms' }, 'leaseTtl: expected at least 500ms, got "1ms".'],
    [{ leaseTtl: 500.5 }, 'leaseTtl: expected a duration such as 5s, got "500.5".'],
    [{ port: 65_536 }, 'port: expected at most 65535, got "65536".'],
    [{ port: -1 }, 'port: expected at least 0, got "-1".'],
    [{ port: 'http' }, 'port: expected a whole number, got "http".'],
    [{ port: '' }, 'port: expected a whole number, got "".'],
    [{ port: '80.5' }, 'port: expected a whole number, got "80.5".'],
    [{ port: true }, 'port: expected a whole number, got "true".'],
    [{ hints: 'yes' }, 'hints: expected true or false, got "yes".'],
    [{ heartbeatInterval: '10s' }, 'workerTimeout must be longer than heartbeatInterval.'],
    [{ jobTimeout: '1h' }, 'jobTimeout must not exceed maxJobTimeout.'],
  ])('refuses %j', (input, message) => {
    expect(configurationError(() => resolveConfig(input, {}, noFile))).toBe(message);
  });

  it('names the variable that is wrong', () => {
    const environment = { PUNCTUAL_PORT: 'x' };
    expect(configurationError(() => resolveConfig({}, environment, noFile))).toMatch(/^PUNCTUAL_PORT: /);
    const file = { PUNCTUAL_PORT_FILE: '/port' };
    expect(configurationError(() => resolveConfig({}, file, () => 'x'))).toMatch(/^PUNCTUAL_PORT_FILE: /);
  });

  it('names the variable whose file cannot be read', () => {
    const message = configurationError(() =>
      resolveConfig({}, { PUNCTUAL_API_KEY_FILE: '/nowhere' }, () => {
        throw new Error('no such file');
      }),
    );
    expect(message).toBe('PUNCTUAL_API_KEY_FILE: no such file.');
  });

  it('cannot be changed once it is resolved', () => {
    const { config, sources } = resolveConfig({}, {}, noFile);
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(sources)).toBe(true);
  });

  it('takes the addresses of Postgres only, and quotes none in an error', () => {
    for (const databaseUrl of [
      '',
      'postgres://a:b@c/d',
      'postgresql://c/d?sslmode=require',
      'POSTGRES://a/b, postgres://c/d',
    ]) {
      expect(resolveConfig({ databaseUrl }, {}, noFile).config.databaseUrl).toBe(databaseUrl);
    }
    const environment = { PUNCTUAL_DATABASE_URL: 'mysql://root:secret@c/d' };
    const message = configurationError(() => resolveConfig({}, environment, noFile));
    expect(message).toMatch(/^PUNCTUAL_DATABASE_URL: expected the address of a Postgres.*got mysql:\/\//);
    expect(message).not.toContain('secret');
    for (const databaseUrl of ['c:5432/secret', 'postgres://c/d,http://e:secret@f']) {
      expect(configurationError(() => resolveConfig({ databaseUrl }, {}, noFile))).not.toContain('secret');
    }
  });

  it('refuses a mistyped sslmode and names those that exist', () => {
    const url = (mode: string) => `postgres://a:secret@c/d?application_name=x&sslmode=${mode}`;
    for (const mode of ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']) {
      expect(() => resolveConfig({ databaseUrl: `${url(mode)},${url(mode)}&x=1` }, {}, noFile)).not.toThrow();
    }
    for (const mode of [
      'foo',
      'verify_full',
      'Disable',
      'allow',
      '',
      'require-',
      'disable,postgres://e?sslmode=no',
    ]) {
      const message = configurationError(() => resolveConfig({ databaseUrl: url(mode) }, {}, noFile));
      expect(message).toContain(
        'expected sslmode to be one of disable, prefer, require, verify-ca, verify-full, no-verify',
      );
      expect(message).not.toContain('secret');
    }
    const got = (mode: string) =>
      configurationError(() => resolveConfig({ databaseUrl: url(mode) }, {}, noFile));
    expect(got('verify_full')).toMatch(/small letters, got verify_full\.$/);
    expect(got('a@b:c')).toMatch(/small letters\.$/);
  });

  it('refuses ssl, which the driver reads in its own way, and says what to write', () => {
    for (const value of ['true', 'false', '1', 'no-verify']) {
      const databaseUrl = `postgres://a:secret@c/d?ssl=${value}`;
      const message = configurationError(() => resolveConfig({ databaseUrl }, {}, noFile));
      expect(message).toMatch(/^databaseUrl: write sslmode instead of ssl: sslmode=verify-full/);
      expect(message).not.toContain('secret');
    }
    const databaseUrl = 'postgres://a:b@c/d?sslmode=verify-full&sslrootcert=x';
    expect(() => resolveConfig({ databaseUrl }, {}, noFile)).not.toThrow();
  });
});

describe('variables of the environment that are no settings', () => {
  it('are named, with the ones that were probably meant', () => {
    const environment = {
      PUNCTUAL_LEASE_TLL: '5s',
      PUNCTUAL_API_KEY_FIEL: 'k',
      PUNCTUAL_NONSENSE: '1',
      PATH: '/',
    };
    expect(unknownVariables(environment)).toBe(
      'ignored, because there is no such setting: PUNCTUAL_LEASE_TLL (did you mean PUNCTUAL_LEASE_TTL?), PUNCTUAL_API_KEY_FIEL (did you mean PUNCTUAL_API_KEY_FILE?), PUNCTUAL_NONSENSE',
    );
  });

  it('are not those that we read', () => {
    const settings = NAMES.map(environmentName);
    const files = settings.map((name) => `${name}_FILE`);
    const others = [
      'PUNCTUAL_PROFILE',
      'PUNCTUAL_SUPERVISED',
      'PUNCTUAL_TEST',
      'PUNCTUAL_TEST_WITHOUT',
      'PUNCTUALLY',
    ];
    const names = [...settings, ...files, ...others];
    expect(unknownVariables(Object.fromEntries(names.map((name) => [name, '1'])))).toBeNull();
  });
});
