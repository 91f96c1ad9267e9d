import type { Command } from 'commander';
import { ApiClient } from '../client/api-client.js';
import { type Credentials, resolveCredentials } from '../client/credentials.js';
import { PunctualError } from '../core/errors.js';
import type { Page } from '../core/wire.js';
import type { RequestOptions, Transport } from '../transport/transport.js';
import type { Cli } from './cli.js';
import { inputOf, nameInputs } from './input-names.js';
import { Output } from './output.js';
import { completeArguments, completeOptions } from './short-ids.js';

/** Options that may be given anywhere on the command line. */
export interface GlobalOptions {
  readonly url?: string;
  readonly apiKey?: string;
  readonly tenant?: string;
  readonly profile?: string;
  readonly json?: boolean;
}

/** The option with which a further command asks about the same tenant, as the end of that command. */
export function tenantFlag({ tenant = 'default' }: GlobalOptions): string {
  return tenant === 'default' ? '' : ` --tenant ${tenant}`;
}

type GlobalOption = keyof GlobalOptions;

const GLOBALS: readonly GlobalOption[] = ['url', 'apiKey', 'tenant', 'profile', 'json'];

/** The global options that each command uses; a command refuses the others instead of ignoring them. */
const used = new WeakMap<Command, readonly GlobalOption[]>();

/** The global options that a command uses. */
export function globalsOf(command: Command): readonly GlobalOption[] {
  const own = used.get(command) ?? [];
  // Whatever takes the address of a node takes it from a profile, too.
  return own.includes('url') && !own.includes('profile') ? [...own, 'profile'] : own;
}

/** Refuses global options that the command does not use. */
export function refuseUnusedGlobals(root: Command, command: Command): void {
  const unused = GLOBALS.find(
    (option) => root.getOptionValueSource(option) === 'cli' && !globalsOf(command).includes(option),
  );
  if (unused === undefined) return;
  throw new PunctualError(
    'USAGE',
    `${flagOf(unused)} has no meaning for \`${pathOf(command)}\`; leave it out.`,
  );
}

/** An option as it is written on the command line. */
export function flagOf(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** What a command gets to run. */
export interface LocalCall<O> {
  readonly cli: Cli;
  readonly output: Output;
  readonly options: O & GlobalOptions;
  readonly args: readonly string[];
  /** Sets the exit code of a run that ends without an error. */
  exitWith(code: number): void;
}

/** What a command gets that makes requests to nodes. */
export interface ServerCall<O> extends LocalCall<O> {
  readonly api: ApiClient;
}

/** The exit codes that commands have set, by run. */
const exitCodes = new WeakMap<Cli, number>();

/** The exit code that the command of this run has set. */
export function exitCodeOf(cli: Cli): number {
  return exitCodes.get(cli) ?? 0;
}

/** Defines what a command does that makes no requests to nodes. */
export function runsLocally<O extends object>(
  cli: Cli,
  command: Command,
  globals: readonly GlobalOption[],
  run: (call: LocalCall<O>) => Promise<void>,
): void {
  used.set(command, globals);
  command.action(async () => {
    const options = command.optsWithGlobals<O & GlobalOptions & { readonly wide?: boolean }>();
    const output = new Output(cli, options);
    const exitWith = (code: number): void => void exitCodes.set(cli, code);
    try {
      await run({ cli, output, options, args: command.args, exitWith });
    } catch (error) {
      throw nameInputs(error, (pointer) => inputOf(command, pointer));
    }
  });
}

/** Defines what a command does that makes requests to nodes; the connection is closed when it ends. */
export function callsServer<O extends object>(
  cli: Cli,
  command: Command,
  run: (call: ServerCall<O>) => Promise<void>,
  globals: readonly GlobalOption[] = GLOBALS,
): void {
  runsLocally<O>(cli, command, globals, async (call) => {
    const api = openApi(findCredentials(cli, call.options), call.options.tenant);
    try {
      const args = await completeArguments(api, command, cli.interrupted);
      const options = await completeOptions(api, command, call.options, cli.interrupted);
      await run({ ...call, api, args, options });
    } finally {
      await api.close();
    }
  });
}

/** The addresses of the nodes and the key for them: from the options, the environment or the credentials file. */
export function findCredentials(cli: Cli, options: GlobalOptions): Credentials {
  const { url, apiKey, profile } = options;
  return resolveCredentials({ url, apiKey, profile, environment: cli.environment, folder: cli.folder });
}

/** How long a request is repeated while no node answers; long enough for a node that restarts. */
const RETRY_FOR_MS = 3_000;

/** Opens a connection to the nodes. */
export function openApi(credentials: Credentials, tenant: string | undefined): ApiClient {
  return new ApiClient({ ...credentials, retryForMs: RETRY_FOR_MS, ...(tenant !== undefined && { tenant }) });
}

const LARGEST_PAGE = 1_000;

/** Which items of a list to read; all of them without a limit. */
export interface Listing {
  readonly query?: Readonly<Record<string, string>>;
  readonly limit?: number;
}

/**
 * Reads a list page by page. A page of large items may hold fewer than were asked for; only `next` tells whether
 * there are more.
 */
export async function readPages<T>(
  api: Transport,
  path: string,
  request: RequestOptions,
  { query = {}, limit = Number.POSITIVE_INFINITY }: Listing = {},
): Promise<Page<T>> {
  const data: T[] = [];
  let next: string | null = null;
  do {
    const size = Math.min(LARGEST_PAGE, limit - data.length);
    const asked = new URLSearchParams({
      limit: String(size),
      ...query,
      ...(next !== null && { after: next }),
    });
    const page: Page<T> = await api.request('GET', `${path}?${asked}`, request);
    for (const item of page.data) data.push(item);
    next = page.next;
  } while (next !== null && data.length < limit);
  return { data, next };
}
