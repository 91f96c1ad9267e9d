import { formatDuration, parseDuration } from './duration.js';
import { messageOf, PunctualError } from './errors.js';
import { nearestName } from './nearest-name.js';
import { MASTER_KEY_FORM, readMasterKeys } from './secret-box.js';

/**
 * Every setting of the product, declared once: type, default, environment variable and description. A flag takes
 * precedence over the environment, and the environment over the default. Settings are resolved once at start and
 * frozen.
 */

type Kind = 'duration' | 'integer' | 'boolean' | 'text' | 'secret';

interface Setting<K extends Kind, D> {
  readonly kind: K;
  readonly default: D;
  readonly min?: number;
  readonly max?: number;
  readonly description: string;
}

type Range = Pick<Setting<Kind, unknown>, 'min' | 'max'>;

const setting = <K extends Kind, D>(
  kind: K,
  value: D,
  description: string,
  range: Range = {},
): Setting<K, D> => ({ kind, default: value, description, ...range });

const duration = (text: string, description: string, min = 1) =>
  setting('duration', parseDuration(text)!, description, { min });

const integer = (value: number, description: string, min = 0, max = 2 ** 31 - 1) =>
  setting('integer', value, description, { min, max });

const boolean = (value: boolean, description: string) => setting('boolean', value, description);
const text = (value: string, description: string) => setting('text', value, description);
const secret = (description: string) => setting('secret', '', description);

/** The settings, by name. Durations are in milliseconds. */
export const SETTINGS = {
  url: text('', 'Address of a node (or several, separated by commas) for clients and workers.'),
  apiKey: secret('Key for the API.'),
  databaseUrl: secret('Postgres to use instead of the embedded one.'),
  data: text('.punctual', 'Folder for the embedded Postgres, credentials and logs of `punctual up`.'),
  secretKey: secret(
    'Master key for the secrets of tenants: 32 bytes in base64 or hexadecimal digits. Of several, separated by commas, the first encrypts and all decrypt.',
  ),
  logLevel: text('info', 'One of trace, debug, info, warn, error, silent.'),
  host: text('127.0.0.1', 'Address to listen on.'),
  port: integer(8080, 'Port to listen on; 0 picks a free one.', 0, 65_535),
  tlsCert: text('', 'File with the certificate of a node and its chain, in PEM; the node then serves HTTPS.'),
  tlsKey: text('', 'File with the private key of that certificate, in PEM.'),
  insecure: boolean(false, 'Allow a node to listen on a public address without TLS.'),
  advertiseUrl: text('', 'Address under which other nodes and workers reach this node.'),
  leaseTtl: duration('5s', 'How long a term lasts without renewal.', 500),
  heartbeatInterval: duration('3s', 'How often workers send heartbeats.', 50),
  workerTimeout: duration('10s', 'Silence after which a worker is dead.', 100),
  allowAddresses: text(
    '',
    'Addresses and CIDR ranges that workers may call although they are not public, separated by commas.',
  ),
  basePath: text(
    '',
    'Path below which a proxy shows the nodes, such as /punctual; most proxies need no such setting.',
  ),
  sessionLifetime: setting(
    'duration',
    parseDuration('12h')!,
    'How long a sign-in to the dashboard lasts; at most 28d.',
    {
      min: 60_000,
      max: parseDuration('28d')!,
    },
  ),
  publicUrl: text(
    '',
    'Address of the nodes that workers tell the receivers of calls, for their reports; on nodes, that of the signed addresses of artifacts.',
  ),
  jobTimeout: duration('20m', 'Timeout of a job that names none.', 1),
  maxJobTimeout: duration('20m', 'Longest timeout a job may ask for.', 1),
  allowCommands: boolean(
    false,
    "Accept exec targets that name a command of the workers' machines; on nodes for submissions, on workers for runs.",
  ),
  maxPayload: integer(256 * 1024, 'Largest payload and result of a job, in bytes.', 1),
  maxError: integer(16 * 1024, 'Largest error of an attempt, in bytes; what is longer is cut.', 256),
  maxLog: integer(1024 * 1024, 'Log kept per job, in bytes.', 0),
  maxBulkJobs: integer(10_000, 'Jobs in one bulk submission.', 1),
  maxBulkBytes: integer(16 * 1024 * 1024, 'Bytes in one bulk submission.', 1024),
  maxDepth: integer(64, 'Levels of nesting in a JSON body.', 4, 1_000),
  maxLabelSets: integer(10_000, 'Different sets of labels that the jobs of a tenant may require.', 0),
  maxOrigins: integer(
    1_000,
    'Origins of http targets, once per set of labels, that have a backlog of their own in a tenant; more share 64.',
    0,
  ),
  originConcurrency: integer(100, 'Calls to one origin that run at the same time; 0 is no limit.', 0),
  circuitThreshold: integer(5, 'Consecutive failures of calls to an origin that open its circuit.', 1),
  circuitPause: duration('5s', 'The first pause of a circuit that opens; each failed probe doubles it.', 1),
  circuitMaxPause: duration('5m', 'The longest pause of a circuit.', 1),
  maxTasks: integer(10_000, 'Tasks that a tenant may define.', 0),
  maxSecrets: integer(100, 'Secrets that a tenant may have.', 0, 10_000),
  artifactStore: text(
    '',
    'Where the bytes of artifacts are kept: a folder that all nodes share, or s3://bucket/prefix. Default: `artifacts` in the data folder.',
  ),
  s3Endpoint: text('', 'Address of an S3-compatible server for the bucket of artifacts; without it, AWS.'),
  s3Region: text('us-east-1', 'Region of the bucket of artifacts.'),
  s3AccessKeyId: secret('Id of the key for the bucket of artifacts.'),
  s3SecretAccessKey: secret('The key for the bucket of artifacts itself.'),
  maxArtifactBytes: setting('integer', 1024 ** 3, 'Largest artifact, in bytes.', {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
  }),
  maxOutputBytes: integer(64 * 1024 * 1024, 'Bytes that one job may leave in its folder `output`.', 0),
  allowScripts: boolean(false, 'Whether artifacts may be scripts (#!) as well as static programs.'),
  controlGroup: text(
    '',
    'On workers: control group of version 2 below which programs get theirs, such as /sys/fs/cgroup/punctual; `off` for none. Default: that of the worker, if nothing else runs in it.',
  ),
  uploadTime: duration('1h', 'How long the address of an upload can be used.', 1_000),
  uploadStall: duration('30s', 'How long an upload may send nothing before it is given up.', 50),
  artifactTimeout: duration('1h', 'How long a job waits for its artifact if it does not say so itself.', 1),
  maxQueues: integer(100_000, 'Queues of a tenant that has no quota of its own for them.', 0),
  maxConnections: integer(10_000, 'Open connections to a node; requests on more of them are refused.', 1),
  keyRate: integer(0, 'Requests of one key in a second at one node, but those of workers; 0 is no limit.', 0),
  historyRetention: duration('30d', 'How long ended jobs are kept.', 86_400_000),
  ledgerRetention: duration('30d', 'How long the ledger of schedules is kept.', 60_000),
  idempotencyRetention: duration(
    '24h',
    'How long answers to requests with an Idempotency-Key are kept.',
    1_000,
  ),
  auditRetention: duration('365d', 'How long entries of the audit are kept.', 86_400_000),
  trustedProxies: text(
    '',
    'Proxies whose `x-forwarded-for` counts: addresses and CIDR ranges, separated by commas.',
  ),
  databaseConnections: integer(12, 'Connections of a node to the database.', 4, 1_000),
  unservedAfter: duration('30s', 'How long ready jobs may lack a fitting worker before nodes warn.', 100),
  metricsLabels: integer(
    100,
    'Queues, and pairs of queue and task, that metrics name; the rest is counted as `other`.',
    0,
    1_000,
  ),
  laterThreshold: duration('15m', 'Jobs due beyond this wait outside the live table.', 1_000),
  batchAgeing: duration(
    '5s',
    'How long a batch waits for free slots before slots that fall free are kept for it.',
    0,
  ),
  hints: boolean(true, 'Wake the leader after each submission; without it the look-back finds new jobs.'),
} as const;

/** The name of a setting. */
export type SettingName = keyof typeof SETTINGS;

/** The resolved settings. */
export type Config = {
  readonly [N in SettingName]: (typeof SETTINGS)[N]['default'] extends number
    ? number
    : (typeof SETTINGS)[N]['default'] extends boolean
      ? boolean
      : string;
};

/** What flags or a program may set: durations as text or in milliseconds, other values as they are or as text. */
export type ConfigInput = { readonly [N in SettingName]?: string | number | boolean | undefined };

/** The environment variable of a setting: `leaseTtl` → `PUNCTUAL_LEASE_TTL`. */
export function environmentName(name: SettingName): string {
  return `PUNCTUAL_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

const PREFIX = 'PUNCTUAL_';

/** Variables of ours that are no settings: the profile of `punctual login`, and what `punctual up` tells its processes. */
const OTHER_VARIABLES: readonly string[] = ['PUNCTUAL_PROFILE', 'PUNCTUAL_SUPERVISED'];
/** For tests of the product itself. */
const TEST_VARIABLE = /^PUNCTUAL_TEST(_|$)/;

/** Which variables look like settings and are none, with those that were probably meant; null if there are none. */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string | null {
  const settings = (Object.keys(SETTINGS) as SettingName[]).map(environmentName);
  const known = new Set([...settings, ...settings.map((name) => `${name}_FILE`), ...OTHER_VARIABLES]);
  const unknown = Object.keys(environment).filter(
    (name) => name.startsWith(PREFIX) && !known.has(name) && !TEST_VARIABLE.test(name),
  );
  if (unknown.length === 0) return null;
  // The prefix, which all have, must not make them alike.
  const rests = [...known].map((name) => name.slice(PREFIX.length));
  const told = unknown.map((name) => {
    const meant = nearestName(name.slice(PREFIX.length), rests);
    return meant === undefined ? name : `${name} (did you mean ${PREFIX}${meant}?)`;
  });
  return `ignored, because there is no such setting: ${told.join(', ')}`;
}

function parse(name: SettingName, value: string | number | boolean, from: string): string | number | boolean {
  const setting = SETTINGS[name] as Setting<Kind, unknown>;
  const wrong = (expected: string) =>
    new PunctualError(
      'CONFIGURATION',
      `${from}: expected ${expected}, got ${JSON.stringify(String(value))}.`,
    );
  if (name === 'databaseUrl') return parseDatabaseUrls(String(value), from);
  if (name === 'secretKey') return checkMasterKeys(String(value), from);
  if (setting.kind === 'text' || setting.kind === 'secret') return String(value);
  if (setting.kind === 'boolean') {
    if (value === true || value === 'true' || value === '1') return true;
    if (value === false || value === 'false' || value === '0') return false;
    throw wrong('true or false');
  }
  const isDuration = setting.kind === 'duration';
  const number =
    typeof value === 'number'
      ? value
      : isDuration
        ? parseDuration(String(value))
        : Number(String(value).trim() || 'x');
  if (number === null || !Number.isSafeInteger(number))
    throw wrong(isDuration ? 'a duration such as 5s' : 'a whole number');
  if (setting.min !== undefined && number < setting.min) {
    throw wrong(`at least ${isDuration ? formatDuration(setting.min) : setting.min}`);
  }
  if (setting.max !== undefined && number > setting.max) throw wrong(`at most ${setting.max}`);
  return number;
}

const DATABASE_URL = /^postgres(ql)?:\/\//i;

/** One address per shard, with commas between them. Addresses contain passwords, so the error quotes none. */
function parseDatabaseUrls(value: string, from: string): string {
  const wrong = value.split(',').find((url) => url.trim() !== '' && !DATABASE_URL.test(url.trim()));
  if (wrong === undefined) {
    mustHaveSslModes(value, from);
    return value;
  }
  const scheme = /^\s*([a-z][a-z0-9+.-]*):\/\//i.exec(wrong)?.[1];
  const got = scheme === undefined ? 'something else' : `${scheme}://…`;
  throw new PunctualError(
    'CONFIGURATION',
    `${from}: expected the address of a Postgres, such as postgres://user@host:5432/name, got ${got}.`,
  );
}

/** A key that is nearly right is a secret, too, so the error does not quote it. */
function checkMasterKeys(value: string, from: string): string {
  if (value === '' || readMasterKeys(value)) return value;
  throw new PunctualError(
    'CONFIGURATION',
    `${from}: expected ${MASTER_KEY_FORM}, or several of these with commas between them.`,
  );
}

const SSL_MODES: readonly string[] = [
  'disable',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
  'no-verify',
];

/** The driver takes any value of `sslmode`, and what it then does is seldom what was meant. */
function mustHaveSslModes(urls: string, from: string): void {
  for (const [, mode] of urls.matchAll(/[?&]sslmode=([^&#,]*)/gi)) {
    if (SSL_MODES.includes(mode!.trimEnd())) continue;
    // Only what is a word, and no part of a password that happens to look like a setting.
    const got = /^[\w-]{1,20}$/.test(mode!) ? `, got ${mode}` : '';
    const detail = `${from}: expected sslmode to be one of ${SSL_MODES.join(', ')}, in small letters${got}.`;
    throw new PunctualError('CONFIGURATION', detail);
  }
  // The driver takes every text but 0 for a wish for TLS, `false` as well.
  if (/[?&]ssl=/i.test(urls)) {
    const detail = `${from}: write sslmode instead of ssl: sslmode=verify-full is TLS with a certificate that is checked, sslmode=disable is no TLS.`;
    throw new PunctualError('CONFIGURATION', detail);
  }
}

/** The settings, and where they came from. */
export interface ResolvedConfig {
  readonly config: Config;
  /** Where each value came from: `flag`, an environment variable, or `default`. */
  readonly sources: Readonly<Record<SettingName, string>>;
}

/** Resolves all settings. `readFile` reads the secrets that `_FILE` variables point to. */
export function resolveConfig(
  input: ConfigInput,
  environment: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): ResolvedConfig {
  const config: Record<string, string | number | boolean> = {};
  const sources: Record<string, string> = {};
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const variable = environmentName(name);
    const fileVariable = `${variable}_FILE`;
    const given = input[name];
    const [fromEnvironment, file] = [environment[variable], environment[fileVariable]];
    if (given !== undefined) {
      config[name] = parse(name, given, name);
      sources[name] = 'flag';
    } else if (fromEnvironment) {
      config[name] = parse(name, fromEnvironment, variable);
      sources[name] = variable;
    } else if (file) {
      config[name] = parse(name, readSecret(file, fileVariable, readFile), fileVariable);
      sources[name] = fileVariable;
    } else {
      config[name] = SETTINGS[name].default;
      sources[name] = 'default';
    }
  }
  const resolved = Object.freeze(config) as Config;
  if (resolved.workerTimeout <= resolved.heartbeatInterval) {
    throw new PunctualError('CONFIGURATION', 'workerTimeout must be longer than heartbeatInterval.');
  }
  if (resolved.jobTimeout > resolved.maxJobTimeout) {
    throw new PunctualError('CONFIGURATION', 'jobTimeout must not exceed maxJobTimeout.');
  }
  if ((resolved.tlsCert === '') !== (resolved.tlsKey === '')) {
    throw new PunctualError('CONFIGURATION', 'Give both tlsCert and tlsKey, or neither.');
  }
  return { config: resolved, sources: Object.freeze(sources) as Record<SettingName, string> };
}

function readSecret(path: string, from: string, readFile: (path: string) => string): string {
  try {
    return readFile(path).trim();
  } catch (error) {
    if (error instanceof PunctualError) throw error;
    throw new PunctualError('CONFIGURATION', `${from}: ${messageOf(error)}.`, { cause: error });
  }
}
