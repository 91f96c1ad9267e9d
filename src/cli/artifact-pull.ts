import { createHash } from 'node:crypto';
import { mkdir, stat } from 'node:fs/promises';
import { basename, dirname, resolve, sep } from 'node:path';
import type { Command } from 'commander';
import { Artifacts } from '../client/artifacts.js';
import type { ArtifactView } from '../core/artifact.js';
import { PunctualError } from '../core/errors.js';
import { readable, withProgress } from './artifact-transfer.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { bytesText } from './output.js';

interface PullFlags {
  readonly output?: string;
  readonly job?: string;
  readonly only?: string;
}

const STDOUT = '-';

/** `punctual artifact pull`: an artifact, or the files that a job left. */
export function addPullCommand(artifact: Command, cli: Cli, reference: string): void {
  const pull = artifact
    .command('pull')
    .description(
      'download an artifact, or what a job left; a file is there when all of it is and fits its hash',
    )
    .argument('[artifact]', reference)
    .option('--job <id>', 'the files that this job left, instead of an artifact')
    .option('--only <file>', 'of these files only this one')
    .option(
      '--output <path>',
      'the file to write, - for stdout; with --job the folder for the files; default here, by their names',
    );
  callsServer<PullFlags>(cli, pull, async (call) => {
    const { args, options } = call;
    if ((args[0] === undefined) === (options.job === undefined))
      throw new PunctualError('USAGE', 'Name an artifact, or a job whose files are wanted with --job.');
    if (options.only !== undefined && options.job === undefined)
      throw new PunctualError('USAGE', '--only goes with --job.');
    if (options.job !== undefined) return pullFiles(call, options.job);
    return pullOne(call, args[0]!);
  });
}

async function pullOne(call: ServerCall<PullFlags>, reference: string): Promise<void> {
  const { cli, api, output, options } = call;
  const found = await new Artifacts(api).get(reference);
  if (options.output === STDOUT) return printBytes(call, found);
  const path = resolve(cli.folder, options.output ?? basename(found.output ?? found.name ?? found.id));
  const view = await download(call, found, path);
  output.document({ ...view, path }, () => `${path}  ${bytesText(view.size)}\n`);
}

/** Downloads what a job left into a folder, under the names that it had. */
async function pullFiles(call: ServerCall<PullFlags>, job: string): Promise<void> {
  const { cli, api, output, options } = call;
  const list = `/v1/jobs/${encodeURIComponent(job)}/outputs`;
  const { data } = await readPages<ArtifactView>(api, list, { signal: cli.interrupted });
  const files = data.filter((file) => options.only === undefined || file.output === options.only);
  if (files.length === 0) {
    const what = options.only === undefined ? 'files' : `file ${options.only}`;
    throw new PunctualError('ARTIFACT_NOT_FOUND', `Job ${job} has left no ${what}.`);
  }
  if (options.output === STDOUT) {
    if (files.length > 1)
      throw new PunctualError('USAGE', 'Only one file goes to stdout: name it with --only.');
    return printBytes(call, files[0]!);
  }
  const folder = resolve(cli.folder, options.output ?? '.');
  const pulled: (ArtifactView & { readonly path: string })[] = [];
  for (const file of files) {
    const path = pathIn(folder, file.output ?? file.id);
    await readable(folder, () => mkdir(dirname(path), { recursive: true }));
    pulled.push({ ...(await download(call, file, path)), path });
  }
  output.document({ data: pulled }, () =>
    pulled.map(({ path, size }) => `${path}  ${bytesText(size)}\n`).join(''),
  );
}

/** A name of a file comes from a program, and must not lead out of the folder. */
function pathIn(folder: string, name: string): string {
  const path = resolve(folder, name);
  if (path.startsWith(folder.endsWith(sep) ? folder : folder + sep)) return path;
  throw new PunctualError('USAGE', `The file ${name} would lie outside of ${folder}; it is not downloaded.`);
}

async function download(
  { cli, api, output }: ServerCall<PullFlags>,
  { id }: ArtifactView,
  path: string,
): Promise<ArtifactView> {
  // Found out now: the file takes its place only when all of its bytes are there.
  if ((await stat(path).catch(() => null))?.isDirectory())
    throw new PunctualError('USAGE', `${path} is a folder; name the file with --output.`);
  return withProgress(cli, output, basename(path), (onProgress) =>
    readable(path, () => new Artifacts(api).pull(id, path, { onProgress, signal: cli.interrupted })),
  );
}

/** Writes the bytes to stdout; damaged ones are known at their end only. */
async function printBytes({ cli, api }: ServerCall<PullFlags>, { id, sha256 }: ArtifactView): Promise<void> {
  const hash = createHash('sha256');
  const signal = AbortSignal.any([cli.interrupted, cli.readerGone]);
  for await (const piece of await new Artifacts(api).read(id, signal)) {
    hash.update(piece);
    await new Promise<void>((done, fail) => {
      cli.stdout.write(piece, (error) => (error ? fail(error) : done()));
    });
  }
  if (hash.digest('hex') !== sha256)
    throw new PunctualError('ARTIFACT_HASH', `The bytes of artifact ${id} came damaged; try again.`);
}
