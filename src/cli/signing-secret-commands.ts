import type { Command } from 'commander';
import type { NewSigningSecret, SigningSecretView } from '../core/secret.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { durationText } from './option-values.js';
import { type Column, relativeTime } from './output.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [{ header: 'ID' }, { header: 'CREATED' }, { header: 'EXPIRES' }];

/** `punctual signing-secret …`: the secrets with which receivers check that a call is genuine. */
export function addSigningSecretCommands(program: Command, cli: Cli): void {
  const noun = program
    .command('signing-secret')
    .description('create, list and delete the secrets with which calls are signed');
  const create = noun
    .command('create')
    .description('create the next signing secret; it is shown only once')
    .option('--keep-others-for <duration>', 'how long the others stay valid (default: 1d)', durationText);
  callsServer<{ readonly keepOthersFor?: string }>(
    cli,
    create,
    async ({ api, output, options: { keepOthersFor } }) => {
      const body = keepOthersFor === undefined ? {} : { keepOthersFor };
      const made = await api.request<NewSigningSecret>('POST', '/v1/signing-secrets', {
        ...{ body, signal: cli.interrupted },
      });
      output.document(made, () => `${made.secret}\n`);
    },
  );
  const list = noun
    .command('list')
    .description('list the signing secrets that are valid; they themselves are not shown')
    .option(...WIDE);
  const show = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const page = await readPages<SigningSecretView>(api, '/v1/signing-secrets', {
      signal: cli.interrupted,
    });
    const time = (at: string | null) => (at === null ? 'never' : relativeTime(at, cli.now()));
    output.document(page, () =>
      output.table(
        COLUMNS,
        page.data.map(({ id, createdAt, expiresAt }) => [id, time(createdAt), time(expiresAt)]),
      ),
    );
  };
  callsServer(cli, list, watched(list, show));
  const remove = noun
    .command('delete')
    .description('end a signing secret at once')
    .argument('<id>', 'the id of the signing secret');
  callsServer(cli, remove, async ({ api, output, args }) => {
    const id = args[0]!;
    await api.request('DELETE', `/v1/signing-secrets/${encodeURIComponent(id)}`, { signal: cli.interrupted });
    output.document({ id, deleted: true }, () => `${id}  deleted\n`);
  });
}
