import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import { JOB_PARTS, JOB_STATES, type Job, type ListedJob } from '../core/job.js';
import type { Page, RedriveAnswer, Why } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { addLogsCommand, followJob, readJob, requireSuccess, stateText } from './job-follow.js';
import { addSubmitCommand } from './job-submit.js';
import { jobDetails, jobTable } from './job-text.js';
import { wholeNumber } from './option-values.js';
import { printable } from './paint.js';

/** `punctual job …`: submitting, showing and controlling jobs. */
export function addJobCommands(program: Command, cli: Cli): void {
  const job = program.command('job').description('submit, show and control jobs');
  addSubmitCommand(job, cli);
  addListCommand(job, cli);
  addGetCommand(job, cli);
  addWatchCommand(job, cli);
  addWhyCommand(job, cli);
  addControlCommands(job, cli);
  addRedriveCommand(job, cli);
  addLogsCommand(job, cli);
}

interface ListOptions {
  readonly state?: string;
  readonly task?: string;
  readonly queue?: string;
  readonly key?: string;
  readonly worker?: string;
  readonly schedule?: string;
  readonly include?: string;
  readonly limit: number;
  readonly all?: boolean;
}

const LARGEST_PAGE = 1_000;

function addListCommand(job: Command, cli: Cli): void {
  const command = job
    .command('list')
    .description('list jobs, newest first')
    .option('--state <state>', `only jobs in this state: ${JOB_STATES.join(', ')}`)
    .option('--task <name>', 'only jobs of this task')
    .option('--queue <name>', 'only jobs of this queue')
    .option('--key <key>', 'only the job with this key')
    .option('--worker <id>', 'only jobs that this worker runs or ran')
    .option('--schedule <name>', 'only jobs of this schedule')
    .option('--include <parts>', `show these parts in full, however large: ${JOB_PARTS.join(',')}`)
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 50)
    .option('--all', 'show all of them, page after page');
  callsServer<ListOptions>(cli, command, async (call) => {
    const page = await readJobs(call);
    const { output } = call;
    output.document(page, () => jobTable(output, page.data, cli.now()));
    if (page.next !== null && !output.json) output.note('There are more: use --all, or a larger --limit.');
  });
}

function readJobs({ api, cli, options }: ServerCall<ListOptions>): Promise<Page<ListedJob>> {
  const query: Record<string, string> = {};
  for (const name of ['state', 'task', 'queue', 'key', 'worker', 'schedule', 'include'] as const) {
    const value = options[name];
    if (value !== undefined) query[name] = value;
  }
  const listing = options.all ? { query } : { query, limit: options.limit };
  return readPages(api, '/v1/jobs', { signal: cli.interrupted }, listing);
}

function addGetCommand(job: Command, cli: Cli): void {
  const command = job
    .command('get')
    .description('show one job with its attempts')
    .argument('[id]', 'the id of the job')
    .option('--key <key>', 'the key of the job instead of its id');
  callsServer<{ key?: string }>(cli, command, async ({ api, output, options, args }) => {
    const [id] = args;
    if ((id === undefined) === (options.key === undefined)) {
      throw new PunctualError('USAGE', 'Give the id of a job, or its key with --key.');
    }
    const found = id ?? (await idOfKey(api, options.key!, cli.interrupted));
    const shown = await readJob(api, found, cli.interrupted);
    output.document(shown, () => jobDetails(output, shown));
  });
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
    output.document(why, () =>
      output.details([
        ['state', why.state],
        ['gate', { text: why.gate, style: 'yellow' }],
        ['detail', why.detail],
        ...Object.entries(why.figures).map(([name, value]): [string, string] => [name, String(value)]),
      ]),
    );
  });
}

const CONTROLS = {
  cancel: 'cancel a job; a running one is told to stop',
  hold: 'keep a waiting job from starting until it is released',
  release: 'let a held job start',
  retry: 'run a failed or cancelled job again',
} as const;

function addControlCommands(job: Command, cli: Cli): void {
  for (const [verb, description] of Object.entries(CONTROLS)) {
    const command = job.command(verb).description(description).argument('<id>', 'the id of the job');
    callsServer(cli, command, async ({ api, output, args }) => {
      const path = `/v1/jobs/${encodeURIComponent(args[0]!)}/${verb}`;
      const changed = await api.request<Job>('POST', path, { signal: cli.interrupted });
      output.document(changed, () => `${changed.id}  ${printable(stateText(changed))}\n`);
    });
  }
}

interface RedriveOptions {
  readonly task?: string;
  readonly queue?: string;
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

function addRedriveCommand(job: Command, cli: Cli): void {
  const command = job
    .command('redrive')
    .description('run permanently failed jobs again')
    .option('--task <name>', 'only jobs of this task')
    .option('--queue <name>', 'only jobs of this queue')
    .option('--all', 'every failed job')
    .option('--dry-run', 'only count them');
  callsServer<RedriveOptions>(cli, command, async ({ api, output, options }) => {
    const { task, queue, all, dryRun = false } = options;
    const body = { ...(task && { task }), ...(queue && { queue }), ...(all && { all }), dryRun };
    const answer = await api.request<RedriveAnswer>('POST', '/v1/jobs/redrive', {
      body,
      signal: cli.interrupted,
    });
    output.document(answer, () =>
      answer.dryRun
        ? `${answer.matched}${answer.more ? ' or more' : ''} failed jobs would run again\n`
        : `${answer.redriven} failed jobs run again${answer.more ? '; there are more' : ''}\n`,
    );
  });
}
