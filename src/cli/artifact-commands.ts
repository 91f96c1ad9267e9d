import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { Artifacts } from '../client/artifacts.js';
import type { ArtifactView, ArtifactWithUses } from '../core/artifact.js';
import { PunctualError } from '../core/errors.js';
import { addPullCommand } from './artifact-pull.js';
import { readable, withProgress } from './artifact-transfer.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { bytesText, type Cell, type Column, type Output, relativeTime } from './output.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'ARTIFACT', shrink: 'name' },
  { header: 'VERSION', shrink: 'name' },
  { header: 'STATE' },
  { header: 'KIND', drop: 2 },
  { header: 'SIZE', align: 'right' },
  { header: 'CREATED', drop: 1 },
  { header: 'BY', shrink: 'name', drop: 3 },
  { header: 'ID', shrink: 'id' },
];

const REFERENCE = 'id, name@version, or a name for its newest version';

interface PushFlags {
  readonly name?: string;
  readonly version?: string;
  readonly data?: boolean;
}

interface ListFlags {
  readonly name?: string;
  readonly job?: string;
}

/** `punctual artifact …`: uploading, listing, downloading and removing what jobs run. */
export function addArtifactCommands(program: Command, cli: Cli): void {
  const artifact = program
    .command('artifact')
    .description('programs and files that jobs run: push, list, get, pull, delete');
  addPushCommand(artifact, cli);
  addListCommand(artifact, cli);
  const get = artifact
    .command('get')
    .description('show an artifact, and what names it')
    .argument('<artifact>', REFERENCE);
  callsServer(cli, get, async ({ api, output, args }) => {
    const view = await new Artifacts(api).get(args[0]!);
    output.document(view, () => details(output, view, view.usedBy));
  });
  addPullCommand(artifact, cli, REFERENCE);
  const remove = artifact
    .command('delete')
    .description('remove an artifact that no job, schedule, task or definition names')
    .argument('<artifact>', REFERENCE);
  callsServer(cli, remove, async ({ api, output, args }) => {
    const name = args[0]!;
    await new Artifacts(api).delete(name);
    output.document({ artifact: name, deleted: true }, () => `${name}  deleted\n`);
  });
}

function addPushCommand(artifact: Command, cli: Cli): void {
  const push = artifact
    .command('push')
    .description(
      'upload a static program for jobs to run; what broke off goes on where it was, and what is there is not sent again',
    )
    .argument('<file>', 'the file')
    .option('--name <name>', 'the name by which jobs name it')
    .option('--version <version>', 'its version, which never changes its bytes')
    .option('--data', 'a file that is not to be run');
  callsServer<PushFlags>(cli, push, async ({ api, output, options: { name, version, data }, args }) => {
    if ((name === undefined) !== (version === undefined))
      throw new PunctualError('USAGE', '--name and --version go together: give both or neither.');
    const path = resolve(cli.folder, args[0]!);
    const view = await withProgress(cli, output, basename(path), (onProgress) =>
      readable(args[0]!, () =>
        new Artifacts(api).push(path, {
          ...{ onProgress, signal: cli.interrupted, runnable: data !== true },
          ...(name !== undefined && version !== undefined && { name, version }),
        }),
      ),
    );
    output.document(view, () => details(output, view));
  });
}

function addListCommand(artifact: Command, cli: Cli): void {
  const list = artifact
    .command('list')
    .description('list the artifacts, newest first')
    .option('--name <name>', 'only the versions of this name')
    .option('--job <id>', 'only what this job left behind')
    .option(...WIDE);
  const show = async ({ api, output, options: { name, job } }: ServerCall<ListFlags>): Promise<void> => {
    const query = { ...(name !== undefined && { name }), ...(job !== undefined && { job }) };
    const page = await readPages<ArtifactView>(api, '/v1/artifacts', { signal: cli.interrupted }, { query });
    output.document(page, () =>
      output.table(
        COLUMNS,
        page.data.map((view) => row(view, cli.now())),
      ),
    );
  };
  callsServer(cli, list, watched(list, show));
}

function details(output: Output, view: ArtifactView, usedBy: ArtifactWithUses['usedBy'] = []): string {
  return output.details([
    ['artifact', view.id],
    ['name', view.name === null ? null : `${view.name}@${view.version}`],
    ['state', stateOf(view)],
    ['kind', [view.kind, view.machine].filter((each) => each !== null).join(', ') || null],
    ['size', bytesText(view.size)],
    ['sha256', view.sha256],
    ['created', `${view.createdAt} by ${view.createdBy}`],
    ['uploaded', view.readyAt],
    ['expires', view.expiresAt],
    ['job', view.job === null ? null : `${view.job} (${view.output})`],
    ['used by', usedBy.length === 0 ? null : usedBy.map(({ kind, name }) => `${kind} ${name}`).join(', ')],
  ]);
}

function stateOf({ state }: ArtifactView): Cell {
  return { text: state, style: state === 'ready' ? 'green' : 'yellow' };
}

function row(view: ArtifactView, now: number): Cell[] {
  const { id, name, version, output, kind, size, createdAt, createdBy } = view;
  return [
    name ?? output ?? '-',
    version ?? '-',
    stateOf(view),
    kind ?? '-',
    bytesText(size),
    relativeTime(createdAt, now),
    createdBy,
    id,
  ];
}
