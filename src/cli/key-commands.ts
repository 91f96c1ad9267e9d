import { type Command, InvalidArgumentError } from 'commander';
import {
  checkOperatorScopes,
  KEY_SCOPES,
  type KeyScope,
  type KeyView,
  type NewKeyView,
} from '../core/access.js';
import { type Duration, humanDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import {
  callsServer,
  findCredentials,
  type GlobalOptions,
  openApi,
  readPages,
  runsLocally,
  type ServerCall,
} from './call.js';
import type { Cli } from './cli.js';
import { firstDatabase, resolveSettings } from './configuration.js';
import { commaList, durationText, moment } from './option-values.js';
import { type Cell, type Column, type Output, relativeTime } from './output.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'ID' },
  { header: 'NAME', shrink: 'name' },
  { header: 'TENANT', shrink: 'name' },
  { header: 'SCOPES' },
  { header: 'LIMITED TO', shrink: true, drop: 3 },
  { header: 'EXPIRES', drop: 1 },
  { header: 'USED', drop: 2 },
];

interface CreateOptions {
  readonly operator?: boolean;
  readonly databaseUrl?: string;
  readonly name?: string;
  readonly scopes?: readonly KeyScope[];
  readonly expires?: string;
  readonly queues?: readonly string[];
  readonly tasks?: readonly string[];
}

/** `punctual key …`: making, listing, revoking and rotating keys. */
export function addKeyCommands(program: Command, cli: Cli): void {
  const key = program.command('key').description('create, list, rotate and revoke keys for the API');
  addCreateCommand(key, cli);
  const list = key
    .command('list')
    .description('list the keys; they themselves are not shown')
    .option(...WIDE);
  const show = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const page = await readPages<KeyView>(api, '/v1/keys', { signal: cli.interrupted });
    output.document(page, () =>
      output.table(
        COLUMNS,
        page.data.map((view) => row(view, cli.now())),
      ),
    );
  };
  callsServer(cli, list, watched(list, show));
  const get = key.command('get').description('show what a key may do').argument('<id>', 'the id of the key');
  callsServer(cli, get, async ({ api, output, args }) => {
    const view = await api.request<KeyView>('GET', pathOf(args[0]!), { signal: cli.interrupted });
    output.document(view, () => details(output, view, cli.now()));
  });
  const revoke = key
    .command('revoke')
    .description('revoke a key: all nodes refuse it within about a second')
    .argument('<id>', 'the id of the key');
  callsServer(cli, revoke, async ({ api, output, args }) => {
    const id = args[0]!;
    await api.request('DELETE', pathOf(id), { signal: cli.interrupted });
    output.document({ id, revoked: true }, () => `${id}  revoked\n`);
  });
  addRotateCommand(key, cli);
}

function addCreateCommand(key: Command, cli: Cli): void {
  const create = key
    .command('create')
    .description('create a key; it is shown only once')
    .option(
      '--name <name>',
      'recorded as the creator of what the key creates (default: operator, with --operator)',
    )
    .option('--scopes <list>', `what it may do: ${KEY_SCOPES.join(',')}; with --operator: read`, scopeList)
    .option('--queues <list>', 'the only queues it may touch', commaList)
    .option('--tasks <list>', 'the only tasks it may touch', commaList)
    .option('--expires <moment>', 'when it expires, such as 2027-01-01T00:00:00Z', moment)
    .option('--operator', 'a key for every tenant that may do everything, or with --scopes read only read')
    .option('--database-url <url>', 'with --operator: create it in this Postgres, without a key');
  runsLocally<CreateOptions>(cli, create, ['url', 'apiKey', 'tenant', 'profile', 'json'], async (call) => {
    const { output, options } = call;
    const { operator, databaseUrl, scopes, queues, tasks, expires } = options;
    const name = options.name ?? (operator ? 'operator' : '');
    if (operator && isInDatabase(cli, options)) {
      const unused = { queues, tasks, expires };
      const given = Object.entries(unused).find(([, value]) => value !== undefined)?.[0];
      if (given) throw notInDatabase(given, databaseUrl !== undefined);
      checkOperatorScopes(scopes ?? []);
      const { config } = resolveSettings(cli, { databaseUrl });
      const url = firstDatabase(config.databaseUrl);
      const { createOperatorKey, migrate } = await import('./database-work.js');
      await migrate(url);
      const made = await createOperatorKey(url, name, scopes);
      output.document(made, () => `${made.key}\n`);
      return;
    }
    if (databaseUrl !== undefined)
      throw new PunctualError('USAGE', 'In the database only operator keys can be made: add --operator.');
    if (name === '') throw new PunctualError('USAGE', 'Name the key: --name NAME.');
    if (!operator && !scopes)
      throw new PunctualError(
        'USAGE',
        'Say what the key may do: --scopes read,submit,work,admin, or --operator.',
      );
    const body = {
      name,
      ...(operator && { operator }),
      ...(scopes && { scopes }),
      ...(queues && { queues }),
      ...(tasks && { tasks }),
      ...(expires !== undefined && { expiresAt: expires }),
    };
    const api = openApi(findCredentials(cli, options), options.tenant);
    try {
      const made = await api.request<NewKeyView>('POST', '/v1/keys', { body, signal: cli.interrupted });
      output.document(made, () => `${made.key}\n`);
    } finally {
      await api.close();
    }
  });
}

/** Whether an operator key is made in a database: if one is named, and no node is named on the command line. */
function isInDatabase(cli: Cli, options: CreateOptions & GlobalOptions): boolean {
  if (options.databaseUrl !== undefined) return true;
  const { PUNCTUAL_DATABASE_URL, PUNCTUAL_DATABASE_URL_FILE } = cli.environment;
  const names = Boolean(PUNCTUAL_DATABASE_URL || PUNCTUAL_DATABASE_URL_FILE);
  return names && options.url === undefined && options.profile === undefined;
}

/** The error for an option that only a node can put into effect. */
function notInDatabase(option: string, isNamed: boolean): PunctualError {
  const [why, remedy] = isNamed
    ? ['--database-url is given', 'leave that out']
    : ['PUNCTUAL_DATABASE_URL is set', 'name a node with --url'];
  const detail = `--${option} is for keys that a node makes. This one is made in the database, because ${why}; ${remedy}.`;
  return new PunctualError('USAGE', detail);
}

/** Scopes separated by commas. */
function scopeList(text: string): readonly KeyScope[] {
  const names = commaList(text);
  const isScope = (name: string): name is KeyScope => KEY_SCOPES.some((scope) => scope === name);
  if (!names.every(isScope)) throw new InvalidArgumentError(`Expected some of ${KEY_SCOPES.join(', ')}.`);
  return [...new Set(names)];
}

function addRotateCommand(key: Command, cli: Cli): void {
  const rotate = key
    .command('rotate')
    .description('create the next key with the same rights, and give the old one an end')
    .argument('<id>', 'the id of the old key')
    .option('--old-expires-in <duration>', 'how long the old key stays valid (default: 24h)', durationText)
    .option('--expires <moment>', 'when the next key expires (default: as the old one)', moment);
  callsServer<{ readonly oldExpiresIn?: Duration; readonly expires?: string }>(
    cli,
    rotate,
    async ({ api, output, options: { oldExpiresIn, expires }, args }) => {
      const body = {
        ...(oldExpiresIn !== undefined && { oldExpiresIn }),
        ...(expires !== undefined && { expiresAt: expires }),
      };
      const path = `${pathOf(args[0]!)}/rotate`;
      const made = await api.request<NewKeyView>('POST', path, { body, signal: cli.interrupted });
      output.document(made, () => `${made.key}\n`);
    },
  );
}

function pathOf(id: string): string {
  return `/v1/keys/${encodeURIComponent(id)}`;
}

function limitedTo({ queues, tasks }: KeyView): string | null {
  const parts = [queues && `queues ${queues.join(',')}`, tasks && `tasks ${tasks.join(',')}`].filter(Boolean);
  return parts.length === 0 ? null : parts.join('; ');
}

function scopesOf({ operator, scopes }: KeyView): string {
  if (!operator) return scopes.join(',');
  return scopes.length === 0 ? 'operator' : `operator, ${scopes.join(',')} only`;
}

function row(view: KeyView, now: number): Cell[] {
  return [
    view.id,
    view.name,
    view.tenant ?? '-',
    scopesOf(view),
    limitedTo(view) ?? '-',
    view.expiresAt === null ? 'never' : relativeTime(view.expiresAt, now),
    lastUseOf(view, now) ?? '-',
  ];
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** When a key was last used, no more exactly than it is kept: to the hour, but never before the key was made. */
export function lastUseOf({ lastUsedAt, createdAt }: KeyView, now: number): string | null {
  if (lastUsedAt === null) return null;
  const ago = now - Math.max(Date.parse(lastUsedAt), Date.parse(createdAt));
  if (ago < HOUR_MS) return 'within the last hour';
  const unit = ago < DAY_MS ? HOUR_MS : DAY_MS;
  return `${humanDuration(Math.floor(ago / unit) * unit)} ago`;
}

function details(output: Output, view: KeyView, now: number): string {
  return output.details([
    ['key', view.id],
    ['name', view.name],
    ['tenant', view.tenant],
    ['scopes', scopesOf(view)],
    ['limited to', limitedTo(view)],
    ['expires', view.expiresAt],
    ['created', view.createdAt],
    ['created by', view.createdBy],
    ['last used', lastUseOf(view, now)],
  ]);
}
