import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { RekeyAnswer, SecretView } from '../core/secret.js';
import { pause } from '../transport/pause.js';
import { askSecret, canAsk } from './ask.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { readInput } from './json-input.js';
import { several } from './option-values.js';
import { type Cell, type Column, relativeTime } from './output.js';
import { Progress } from './progress-line.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'SECRET', shrink: 'name' },
  { header: 'ORIGINS', shrink: true },
  { header: 'VERSION', align: 'right', drop: 2 },
  { header: 'CHANGED' },
  { header: 'BY', shrink: 'name', drop: 1 },
];

/** A rekey concerns all tenants. */
const WITHOUT_TENANT = ['url', 'apiKey', 'profile', 'json'] as const;
/** How long to wait where others are changing what is left. */
const BETWEEN_CALLS_MS = 500;

interface SetOptions {
  readonly origin?: readonly string[];
  readonly valueFile?: string;
}

/** `punctual secret …`: setting, listing and deleting secrets, and changing the master key. */
export function addSecretCommands(program: Command, cli: Cli): void {
  const secret = program.command('secret').description('keep secrets for calls: set, list, delete');
  addSetCommand(secret, cli);
  const list = secret
    .command('list')
    .description('list the secrets; their values are not shown')
    .option(...WIDE);
  const show = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const page = await readPages<SecretView>(api, '/v1/secrets', { signal: cli.interrupted });
    output.document(page, () =>
      output.table(
        COLUMNS,
        page.data.map((view) => row(view, cli.now())),
      ),
    );
  };
  callsServer(cli, list, watched(list, show));
  const remove = secret
    .command('delete')
    .description('delete a secret: calls that refer to it fail from now on')
    .argument('<name>', 'the name of the secret');
  callsServer(cli, remove, async ({ api, output, args }) => {
    const name = args[0]!;
    await api.request('DELETE', pathOf(name), { signal: cli.interrupted });
    output.document({ name, deleted: true }, () => `${name}  deleted\n`);
  });
  addRekeyCommand(secret, cli);
}

function addSetCommand(secret: Command, cli: Cli): void {
  const set = secret
    .command('set')
    .description(
      'set a secret; its value is typed without being shown, or read from stdin, without its last line break',
    )
    .argument('<name>', 'the name of the secret')
    .option(
      '--origin <origin>',
      'an origin that it may be sent to, such as https://api.example.com; repeatable',
      several,
    )
    .option('--value-file <file>', 'read the value from this file, without its last line break; - for stdin');
  callsServer<SetOptions>(cli, set, async ({ api, output, options: { origin, valueFile }, args }) => {
    if (!origin)
      throw new PunctualError('USAGE', 'Say where it may be sent to: --origin https://api.example.com.');
    const name = args[0]!;
    const value = await readValue(cli, name, valueFile);
    const body = { value, origins: origin };
    const view = await api.request<SecretView>('PUT', pathOf(name), {
      ...{ body, signal: cli.interrupted, retry: true },
    });
    output.document(view, () =>
      output.details([
        ['secret', view.name],
        ['origins', view.origins.join(', ')],
        ['version', String(view.version)],
        ['changed', view.changedAt],
      ]),
    );
  });
}

/** Never from the command line, which other users of the machine can see and shells remember. */
async function readValue(cli: Cli, name: string, file: string | undefined): Promise<string> {
  const value =
    file === undefined && canAsk(cli)
      ? await askSecret(cli, `Value of ${name}: `, 'value')
      : (await readInput(cli, file ?? '-')).replace(/\r?\n$/, '');
  if (value === '') throw new PunctualError('USAGE', 'No value was given.');
  return value;
}

function addRekeyCommand(secret: Command, cli: Cli): void {
  const rekey = secret
    .command('rekey')
    .description(
      'encrypt the secrets of all tenants anew with the first key of PUNCTUAL_SECRET_KEY; may be repeated',
    );
  callsServer(
    cli,
    rekey,
    async ({ api, output, exitWith }) => {
      const progress = new Progress({ screen: cli.stderr, now: cli.now });
      for (let rekeyed = 0; ; ) {
        const request = { signal: cli.interrupted, retry: true };
        const answer = await api.request<RekeyAnswer>('POST', '/v1/secrets/rekey', request);
        rekeyed += answer.rekeyed;
        if (answer.done) {
          output.document(
            { ...answer, rekeyed },
            () => `${rekeyed} values encrypted anew. ${answer.detail}\n`,
          );
          if (answer.remaining > 0) exitWith(1);
          return;
        }
        progress.line(`${rekeyed} values encrypted anew, ${answer.remaining} left`);
        if (answer.rekeyed === 0) await pause(BETWEEN_CALLS_MS, cli.interrupted);
      }
    },
    WITHOUT_TENANT,
  );
}

function pathOf(name: string): string {
  return `/v1/secrets/${encodeURIComponent(name)}`;
}

function row({ name, origins, version, changedAt, changedBy }: SecretView, now: number): Cell[] {
  return [name, origins.join(', '), String(version), relativeTime(changedAt, now), changedBy];
}
