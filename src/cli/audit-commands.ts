import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type Command, InvalidArgumentError } from 'commander';
import {
  AUDIT_ACTIONS,
  type AuditChainsView,
  type AuditView,
  ChainCheck,
  type ChainFault,
} from '../core/audit.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Page } from '../core/wire.js';
import type { ChainEnds } from '../store/audit.js';
import type { Transport } from '../transport/transport.js';
import {
  callsServer,
  findCredentials,
  type GlobalOptions,
  type LocalCall,
  openApi,
  readPages,
  runsLocally,
} from './call.js';
import type { Cli } from './cli.js';
import { resolveSettings } from './configuration.js';
import { wholeNumber } from './option-values.js';
import { type Cell, type Column, plural, relativeTime } from './output.js';
import { WIDE } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'WHEN' },
  { header: 'ACTION' },
  { header: 'SUBJECT', shrink: 'name' },
  { header: 'TENANT', shrink: 'name', drop: 2 },
  { header: 'WHO', shrink: 'name' },
  { header: 'FROM', drop: 1 },
  { header: 'OUTCOME', drop: 3 },
];

const LARGEST_PAGE = 1_000;
/** How often a chain is read again whose oldest entries were removed meanwhile. */
const TRIES = 3;

interface FilterOptions {
  readonly since?: string;
  readonly until?: string;
  readonly key?: string;
  readonly action?: string;
  readonly kind?: string;
  readonly subject?: string;
}

/** `punctual audit …`: reading, exporting and verifying the audit. */
export function addAuditCommands(program: Command, cli: Cli): void {
  const audit = program.command('audit').description('show, export and verify who did what');
  const list = filtered(audit.command('list').description('list entries, newest first'))
    .option('--limit <n>', 'how many to list (default: 100)', wholeNumber(1, 100_000))
    .option(...WIDE);
  callsServer<FilterOptions & { readonly limit?: number }>(cli, list, async ({ api, output, options }) => {
    const listing = { query: queryOf(options), limit: options.limit ?? 100 };
    const page = await readPages<AuditView>(api, '/v1/audit', { signal: cli.interrupted }, listing);
    output.document(page, () =>
      output.table(
        COLUMNS,
        page.data.map((entry) => row(entry, cli.now())),
      ),
    );
  });
  const exported = filtered(
    audit.command('export').description('print entries as lines of JSON, in the order of the chain'),
  );
  callsServer<FilterOptions>(
    cli,
    exported,
    async ({ api, options }) => {
      await readChain(api, cli, queryOf(options), (line) => void cli.stdout.write(`${line}\n`));
    },
    ['url', 'apiKey', 'tenant', 'profile'],
  );
  addVerifyCommand(audit, cli);
}

function filtered(command: Command): Command {
  return command
    .option('--since <moment>', 'only entries from this moment on, or of this duration, such as 2h')
    .option('--until <moment>', 'only entries before this moment')
    .option('--key <id>', 'only what was done with this key')
    .option('--action <name>', 'only this action, such as queue.pause', action)
    .option('--kind <kind>', 'only subjects of this kind, such as job')
    .option('--subject <name>', 'only the subject with this id or name');
}

function action(text: string): string {
  if (!AUDIT_ACTIONS.some((name) => name === text))
    throw new InvalidArgumentError(`Expected one of ${AUDIT_ACTIONS.join(', ')}.`);
  return text;
}

function queryOf(options: FilterOptions): Record<string, string> {
  const { since, until, key, kind, subject } = options;
  const asked = { since, until, key, action: options.action, kind, subject };
  return Object.fromEntries(
    Object.entries(asked).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}

/** Reads entries in the order of the chain. Written again as they were read, they are the lines that their hashes are made of. */
async function readChain(
  api: Transport,
  cli: Cli,
  query: Readonly<Record<string, string>>,
  onLine: (line: string) => void,
): Promise<void> {
  let next: string | null = null;
  do {
    const asked = new URLSearchParams({
      ...{ order: 'chain', limit: String(LARGEST_PAGE), ...query },
      ...(next !== null && { after: next }),
    });
    const page: Page<AuditView> = await api.request('GET', `/v1/audit?${asked}`, { signal: cli.interrupted });
    for (const entry of page.data) onLine(JSON.stringify(entry));
    next = page.next;
  } while (next !== null);
}

interface VerifyOptions {
  readonly file?: string;
  readonly databaseUrl?: string;
}

function addVerifyCommand(audit: Command, cli: Cli): void {
  const verify = audit
    .command('verify')
    .description('check the chain of entries: exit code 1 if one was changed, removed or moved')
    .option('--file <path>', 'check an export of all tenants instead of what a node has')
    .option('--database-url <url>', 'read the chain from this Postgres, without a key');
  runsLocally<VerifyOptions>(cli, verify, ['url', 'apiKey', 'profile', 'json'], async (call) => {
    const { file, databaseUrl } = call.options;
    if (file !== undefined && databaseUrl !== undefined)
      throw new PunctualError('USAGE', 'Give --file or --database-url, not both.');
    const check =
      file !== undefined
        ? await checkFile(resolve(cli.folder, file))
        : databaseUrl !== undefined
          ? await checkDatabase(cli, databaseUrl)
          : await checkNode(cli, call.options);
    report(call, check);
  });
}

/** A file does not tell where the chain ends: entries that are missing at its end cannot be found. */
async function checkFile(path: string): Promise<ChainCheck> {
  const check = new ChainCheck();
  try {
    for await (const line of createInterface({
      input: createReadStream(path),
      crlfDelay: Number.POSITIVE_INFINITY,
    }))
      if (line !== '') check.add(line);
  } catch (error) {
    throw new PunctualError('USAGE', `The file cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  return check;
}

async function checkDatabase(cli: Cli, databaseUrl: string): Promise<ChainCheck> {
  const { readAuditChain } = await import('./database-work.js');
  const { config } = resolveSettings(cli, { databaseUrl });
  const check = new ChainCheck();
  for (const [shard, url] of config.databaseUrl.split(',').entries()) {
    const onEnds = ({ anchor }: ChainEnds) => check.begin(shard, anchor);
    const { head } = await readAuditChain(url.trim(), shard, onEnds, (line) => check.add(line));
    check.end(shard, head);
  }
  return check;
}

async function checkNode(cli: Cli, options: GlobalOptions): Promise<ChainCheck> {
  const api = openApi(findCredentials(cli, options), undefined);
  try {
    for (let tries = 1; ; tries++) {
      const chains = await chainsOf(api, cli);
      const check = new ChainCheck();
      for (const each of chains)
        check.begin(each.shard, { sequence: each.removedSequence, hash: each.removedHash });
      await readChain(api, cli, {}, (line) => check.add(line));
      for (const { shard, ...head } of chains) check.end(shard, head);
      const now = await chainsOf(api, cli);
      const isSame = now.every((each, i) => each.removedSequence === chains[i]?.removedSequence);
      if (isSame || tries === TRIES) return check;
    }
  } finally {
    await api.close();
  }
}

async function chainsOf(api: Transport, cli: Cli): Promise<AuditChainsView['chains']> {
  return (await api.request<AuditChainsView>('GET', '/v1/audit/chain', { signal: cli.interrupted })).chains;
}

function report({ output, exitWith }: LocalCall<VerifyOptions>, { entries, faults }: ChainCheck): void {
  const ok = faults.length === 0;
  output.document({ ok, entries, faults }, () =>
    ok
      ? `${plural(entries, 'entry', 'entries')}, the chain is whole\n`
      : faults.map((fault) => `${faultText(fault)}\n`).join(''),
  );
  if (!ok) exitWith(1);
}

function faultText({ shard, id, problem, detail }: ChainFault): string {
  return `${problem}: shard ${shard}, ${detail}${id === null ? '' : ` (${id})`}`;
}

function row(entry: AuditView, now: number): Cell[] {
  return [
    relativeTime(entry.at, now),
    entry.action,
    entry.subject,
    entry.tenant ?? '-',
    entry.keyName,
    entry.address ?? '-',
    entry.outcome === 'done' ? 'done' : { text: entry.outcome, style: 'yellow' },
  ];
}
