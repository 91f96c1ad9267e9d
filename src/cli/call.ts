import type { Command } from 'commander';
import { ApiClient } from '../client/api-client.js';
import { type Credentials, resolveCredentials } from '../client/credentials.js';
import { PunctualError } from '../core/errors.js';
import type { Page } from '../core/wire.js';
import type { RequestOptions, Transport } from '../transport/transport.js';
import type { Cli } from './cli.js';
import { Output } from './output.js';

/** Options that may stand anywhere on the command line. */
export interface GlobalOptions {
  readonly url?: string;
  readonly apiKey?: string;
  readonly tenant?: string;
  readonly json?: boolean;
}

type GlobalOption = keyof GlobalOptions;

const GLOBALS: readonly GlobalOption[] = ['url', 'apiKey', 'tenant', 'json'];

/** Which global options mean something to a command; the others are refused there instead of ignored. */
const taken = new WeakMap<Command, readonly GlobalOption[]>();

/** The global options that a command makes use of. */
export function globalsOf(command: Command): readonly GlobalOption[] {
  return taken.get(command) ?? [];
}

/** Refuses global options that would have no effect on the command. */
export function refuseIdleGlobals(root: Command, command: Command): void {
  const idle = GLOBALS.find(
    (option) => root.getOptionValueSource(option) === 'cli' && !globalsOf(command).includes(option),
  );
  if (idle === undefined) return;
  const flag = `--${idle.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new PunctualError('USAGE', `${flag} has no meaning for \`${pathOf(command)}\`; leave it out.`);
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** What a local command works with. */
export interface LocalCall<O> {
  readonly cli: Cli;
  readonly output: Output;
  readonly options: O & GlobalOptions;
  readonly args: readonly string[];
  /** Chooses the exit code of a run that ends without an error. */
  exitWith(code: number): void;
}

/** What a command that talks to a node works with. */
export interface ServerCall<O> extends LocalCall<O> {
  readonly api: ApiClient;
}

/** Where exit codes that are not errors are left for the end of the run. */
const exitCodes = new WeakMap<Cli, number>();

/** The exit code that the command of this run asked for. */
export function exitCodeOf(cli: Cli): number {
  return exitCodes.get(cli) ?? 0;
}

/** Makes a command that needs no node. */
export function runsLocally<O extends object>(
  cli: Cli,
  command: Command,
  globals: readonly GlobalOption[],
  run: (call: LocalCall<O>) => Promise<void>,
): void {
  taken.set(command, globals);
  command.action(async () => {
    const options = command.optsWithGlobals<O & GlobalOptions>();
    const output = new Output(cli, options.json === true);
    const exitWith = (code: number): void => void exitCodes.set(cli, code);
    await run({ cli, output, options, args: command.args, exitWith });
  });
}

/** Makes a command that talks to a node; the connection is closed when it ends. */
export function callsServer<O extends object>(
  cli: Cli,
  command: Command,
  run: (call: ServerCall<O>) => Promise<void>,
  globals: readonly GlobalOption[] = GLOBALS,
): void {
  runsLocally<O>(cli, command, globals, async (call) => {
    const api = openApi(findCredentials(cli, call.options), call.options.tenant);
    try {
      await run({ ...call, api });
    } finally {
      await api.close();
    }
  });
}

/** Where the nodes are and the key for them: from the options, the environment or the credentials file. */
export function findCredentials(cli: Cli, options: GlobalOptions): Credentials {
  const { url, apiKey } = options;
  return resolveCredentials({ url, apiKey, environment: cli.environment, folder: cli.folder });
}

/** How long a person waits for a node that does not answer; long enough for one that is being started again. */
const RETRY_FOR_MS = 3_000;

/** Opens a connection to the nodes. */
export function openApi(credentials: Credentials, tenant: string | undefined): ApiClient {
  return new ApiClient({ ...credentials, retryForMs: RETRY_FOR_MS, ...(tenant !== undefined && { tenant }) });
}

const LARGEST_PAGE = 1_000;

/** Which part of a list to read; without a limit all of it. */
export interface Listing {
  readonly query?: Readonly<Record<string, string>>;
  readonly limit?: number;
}

/**
 * Reads a list page after page. A page may hold fewer items than were asked for, because they are large; `next` alone says
 * whether there are more.
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
