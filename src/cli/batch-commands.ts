import type { Command } from 'commander';
import { repeatableWith } from '../client/idempotency-key.js';
import { type Batch, type BatchState, type BatchSummary, type BatchWhy, hasEnded } from '../core/batch.js';
import { invalid, PunctualError } from '../core/errors.js';
import { printable, type Style } from '../core/paint.js';
import { isPlainObject } from '../core/schemas/explain.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { type Awaited, awaitEnd } from './end-wait.js';
import { STATE_STYLES } from './job-text.js';
import { readJsonInput } from './json-input.js';
import { durationMs, wholeNumber } from './option-values.js';
import { type Cell, type Column, elapsed, type Output, plural, relativeTime } from './output.js';
import { WIDE, watched } from './watch.js';
import { whyDetails } from './why-text.js';

const ID = ['<id>', 'the id of the batch'] as const;
const LARGEST_PAGE = 1_000;

/** `punctual batch …`: submitting, showing and controlling batches. */
export function addBatchCommands(program: Command, cli: Cli): void {
  const batch = program.command('batch').description('submit, show and control jobs that start together');
  addSubmitCommand(batch, cli);
  addListCommand(batch, cli);
  addGetCommand(batch, cli);
  addWhyCommand(batch, cli);
  addSteerCommand(batch, cli, 'cancel', 'cancel a batch with all its members');
  addSteerCommand(batch, cli, 'retry', 'let all members of a failed or cancelled batch start together again');
}

function pathOf(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}

function awaited(id: string): Awaited<Batch> {
  const events = { batch: id };
  return { path: pathOf(id), events, hasEnded: ({ state }) => hasEnded(state), lineOf: batchLine };
}

const BATCH_STYLES: Readonly<Record<BatchState, Style>> = {
  pending: 'yellow',
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'dim',
};

function stateCell(state: BatchState): Cell {
  return { text: state, style: BATCH_STYLES[state] };
}

/** How far a batch is, on one line. */
function batchLine({ state, size, error }: BatchSummary): string {
  const why = error ? `: ${error.message}` : '';
  return printable(`${state}, ${plural(size, 'member')}${why}`);
}

interface SubmitOptions {
  readonly idempotencyKey?: string;
  readonly wait?: number | true;
}

function addSubmitCommand(batch: Command, cli: Cli): void {
  const command = batch
    .command('submit')
    .description('submit jobs that start together or not at all; prints the id of the batch')
    .argument('<file>', 'a file with the batch as JSON, or a list of its jobs; - for stdin')
    .option(
      '--idempotency-key <key>',
      'the same command with the same key within 24 hours submits nothing more, and prints the same id',
    )
    .option('--wait [duration]', 'wait until it has ended, at most this long', durationMs);
  callsServer<SubmitOptions>(cli, command, async ({ api, output, options, args }) => {
    const { idempotencyKey, wait } = options;
    const submitted = await api.request<Batch>('POST', '/v1/batches', {
      body: await readBatch(cli, args[0]!),
      signal: cli.interrupted,
      ...repeatableWith(idempotencyKey, undefined),
    });
    if (wait === undefined) return output.document(submitted, () => `${submitted.id}\n`);
    if (!output.json) output.note(`submitted ${submitted.id}`);
    const ended = await awaitEnd(cli, api, awaited(submitted.id), wait === true ? null : wait);
    output.document(ended, () => batchDetails(output, ended));
    if (ended.state !== 'succeeded')
      throw new PunctualError('BATCH_UNSUCCESSFUL', `Batch ${ended.id} ended as ${batchLine(ended)}`);
  });
}

async function readBatch(cli: Cli, path: string): Promise<object> {
  const read = await readJsonInput(cli, path);
  if (Array.isArray(read)) return { jobs: read };
  if (!isPlainObject(read))
    throw invalid([{ pointer: '', detail: 'must be an object with "jobs", or a list of jobs' }]);
  return read;
}

const COLUMNS: readonly Column[] = [
  { header: 'ID', shrink: 'id' },
  { header: 'STATE' },
  { header: 'MEMBERS', align: 'right' },
  { header: 'RUN', align: 'right', drop: 1 },
  { header: 'CREATED', drop: 3 },
  { header: 'TOOK', align: 'right', drop: 2 },
  { header: 'ERROR', shrink: true },
];

function batchTable(output: Output, batches: readonly BatchSummary[], now: number): string {
  const rows = batches.map((batch): Cell[] => [
    batch.id,
    stateCell(batch.state),
    String(batch.size),
    String(batch.run),
    relativeTime(batch.createdAt, now),
    elapsed(batch.startedAt, batch.endedAt) ?? '-',
    batch.error?.message ?? '-',
  ]);
  return output.table(COLUMNS, rows);
}

function batchDetails(output: Output, batch: Batch): string {
  const details = output.details([
    ['id', batch.id],
    ['state', stateCell(batch.state)],
    ['tenant', batch.tenant],
    ['members', String(batch.size)],
    ['run', batch.run > 1 ? String(batch.run) : null],
    ['on failure', batch.onFailure],
    ['start timeout', batch.startTimeout],
    ['created', `${batch.createdAt} by ${batch.createdBy}`],
    ['due', batch.dueAt],
    ['started', batch.startedAt],
    ['ended', batch.endedAt],
    ['took', elapsed(batch.startedAt, batch.endedAt)],
    ['error', batch.error === null ? null : { text: batch.error.message, style: 'red' }],
  ]);
  const columns: Column[] = [
    { header: 'MEMBER', align: 'right' },
    { header: 'STATE' },
    { header: 'JOB', shrink: 'id' },
  ];
  const rows = batch.jobs.map(({ id, state }, index): Cell[] => [
    String(index),
    { text: state, style: STATE_STYLES[state] },
    id,
  ]);
  return `${details}\n${output.table(columns, rows)}`;
}

interface ListOptions {
  readonly state?: string;
  readonly schedule?: string;
  readonly limit: number;
}

function addListCommand(batch: Command, cli: Cli): void {
  const command = batch
    .command('list')
    .description('list batches, newest first')
    .option('--state <states>', 'only those in these states, separated by commas')
    .option('--schedule <name>', 'only those that this schedule made')
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 50)
    .option(...WIDE);
  const show = async ({ api, output, options }: ServerCall<ListOptions>): Promise<void> => {
    const { limit, state, schedule } = options;
    const listing = { limit, query: { ...(state && { state }), ...(schedule && { schedule }) } };
    const page = await readPages<BatchSummary>(api, '/v1/batches', { signal: cli.interrupted }, listing);
    output.document(page, () => batchTable(output, page.data, cli.now()));
    if (page.next !== null && !output.json) output.note('There are more: use a larger --limit.');
  };
  callsServer<ListOptions>(cli, command, watched(command, show));
}

function addGetCommand(batch: Command, cli: Cli): void {
  const command = batch
    .command('get')
    .description('show one batch and its members')
    .argument(...ID)
    .option(...WIDE);
  const show = async ({ api, output, args }: ServerCall<object>): Promise<void> => {
    const shown = await api.request<Batch>('GET', pathOf(args[0]!), { signal: cli.interrupted });
    output.document(shown, () => batchDetails(output, shown));
  };
  callsServer(cli, command, watched(command, show));
}

function addWhyCommand(batch: Command, cli: Cli): void {
  const command = batch
    .command('why')
    .description('say why a batch has not started')
    .argument(...ID);
  callsServer(cli, command, async ({ api, output, args }) => {
    const why = await api.request<BatchWhy>('GET', `${pathOf(args[0]!)}/why`, { signal: cli.interrupted });
    output.document(why, () => whyDetails(output, { ...why, gate: why.waitingFor }));
  });
}

function addSteerCommand(batch: Command, cli: Cli, verb: 'cancel' | 'retry', description: string): void {
  const command = batch
    .command(verb)
    .description(description)
    .argument(...ID);
  callsServer(cli, command, async ({ api, output, args }) => {
    const changed = await api.request<Batch>('POST', `${pathOf(args[0]!)}/${verb}`, {
      signal: cli.interrupted,
    });
    output.document(changed, () => `${changed.id}  ${batchLine(changed)}\n`);
  });
}
