import type { Command } from 'commander';
import { filterQuery } from '../client/job-filter.js';
import { PunctualError } from '../core/errors.js';
import { JOB_PARTS, type Job, type ListedJob } from '../core/job.js';
import { printable } from '../core/paint.js';
import type { Page, Why } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { addErrorsCommand } from './figure-commands.js';
import { addChangeCommand } from './job-change.js';
import { addFilterOptions, filterOf, type JobFilterValues } from './job-filters.js';
import { addLogsCommand, followJob, readJob, requireSuccess, stateText } from './job-follow.js';
import { readProgram } from './job-program.js';
import { addSubmitCommand } from './job-submit.js';
import { jobDetails, jobTable } from './job-text.js';
import { wholeNumber } from './option-values.js';
import { addRedriveCommand, addSteerCommands } from './steer-jobs.js';
import { WIDE, watched } from './watch.js';
import { whyDetails } from './why-text.js';

/** `punctual job …`: submitting, showing and controlling jobs. */
export function addJobCommands(program: Command, cli: Cli): void {
  const job = program.command('job').description('submit, show and control jobs');
  addSubmitCommand(job, cli);
  addListCommand(job, cli);
  addGetCommand(job, cli);
  addWatchCommand(job, cli);
  addWhyCommand(job, cli);
  addErrorsCommand(job, cli);
  addChangeCommand(job, cli);
  addSteerCommands(job, cli);
  addRedriveCommand(job, cli);
  addLogsCommand(job, cli);
}

interface ListOptions extends JobFilterValues {
  readonly include?: string;
  readonly limit: number;
  readonly all?: boolean;
}

const LARGEST_PAGE = 1_000;

function addListCommand(job: Command, cli: Cli): void {
  const command = addFilterOptions(
    job
      .command('list')
      .description(
        'list jobs, newest first, with their errors if there is room; --state failed shows these always',
      ),
  )
    .option('--include <parts>', `show these parts in full, however large: ${JOB_PARTS.join(',')}`)
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 50)
    .option('--all', 'show all of them, page after page')
    .option(...WIDE);
  const show = async (call: ServerCall<ListOptions>): Promise<void> => {
    const page = await readJobs(call);
    const { output } = call;
    const withErrors = call.options.state === 'failed' || call.options.errorCode !== undefined;
    output.document(page, () => jobTable(output, page.data, cli.now(), withErrors));
    if (page.next !== null && !output.json) output.note('There are more: use --all, or a larger --limit.');
  };
  callsServer<ListOptions>(cli, command, watched(command, show, { events: () => ({ types: ['job.*'] }) }));
}

function readJobs({ api, cli, options }: ServerCall<ListOptions>): Promise<Page<ListedJob>> {
  const { include } = options;
  const query = { ...filterQuery(filterOf(options)), ...(include !== undefined && { include }) };
  const listing = options.all ? { query } : { query, limit: options.limit };
  return readPages(api, '/v1/jobs', { signal: cli.interrupted }, listing);
}

function addGetCommand(job: Command, cli: Cli): void {
  const command = job
    .command('get')
    .description('show one job with its attempts and the stack of its error')
    .argument('[id]', 'the id of the job')
    .option('--key <key>', 'the key of the job instead of its id')
    .option(...WIDE);
  const show = async ({ api, output, options, args }: ServerCall<{ key?: string }>): Promise<void> => {
    const [id] = args;
    if ((id === undefined) === (options.key === undefined)) {
      throw new PunctualError('USAGE', 'Give the id of a job, or its key with --key.');
    }
    const found = id ?? (await idOfKey(api, options.key!, cli.interrupted));
    const shown = await readJob(api, found, cli.interrupted);
    const facts = output.json ? null : await readProgram(api, shown, cli.interrupted);
    output.document(shown, () => jobDetails(output, shown, facts));
  };
  const events = ({ args: [id] }: ServerCall<{ key?: string }>) => (id === undefined ? null : { job: id });
  callsServer<{ key?: string }>(cli, command, watched(command, show, { events }));
}

async function idOfKey(api: ServerCall<object>['api'], key: string, signal: AbortSignal): Promise<string> {
  const query = new URLSearchParams({ key, limit: '1' });
  const page = await api.request<Page<Job>>('GET', `/v1/jobs?${query}`, { signal });
  const job = page.data[0];
  if (!job) throw new PunctualError('JOB_NOT_FOUND', `No job has the key ${JSON.stringify(key)}.`);
  return job.id;
}

function addWatchCommand(job: Command, cli: Cli): void {
  const command = job
    .command('watch')
    .description('follow a job to its end; exits 3 when it ends unsuccessfully')
    .argument('<id>', 'the id of the job');
  callsServer(cli, command, async ({ api, output, args }) => {
    const signal = AbortSignal.any([cli.interrupted, cli.readerGone]);
    let last = '';
    let seen = await readJob(api, args[0]!, signal);
    for await (seen of followJob(api, seen, signal)) {
      const text = printable(stateText(seen));
      if (text === last) continue;
      last = text;
      output.document(seen, () => `${new Date(cli.now()).toISOString()}  ${text}\n`);
    }
    requireSuccess(seen);
  });
}

function addWhyCommand(job: Command, cli: Cli): void {
  const command = job
    .command('why')
    .description('say why a job is not running')
    .argument('<id>', 'the id of the job');
  callsServer(cli, command, async ({ api, output, args }) => {
    const path = `/v1/jobs/${encodeURIComponent(args[0]!)}/why`;
    const why = await api.request<Why>('GET', path, { signal: cli.interrupted });
    output.document(why, () => whyDetails(output, why));
  });
}
