import type { Command } from 'commander';
import { fixedFilter } from '../client/job-filter.js';
import { changeJobs, type JobSelection, type ManyProgress, type ManyResult } from '../client/many-jobs.js';
import { ERROR_CODES, isErrorCode, PunctualError } from '../core/errors.js';
import type { Job, JobState } from '../core/job.js';
import { printable } from '../core/paint.js';
import type { ManyVerb, RefusedJob } from '../core/wire.js';
import { askYesNo, canAsk } from './ask.js';
import { callsServer, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { addFilterOptions, filterOf, type JobFilterValues } from './job-filters.js';
import { stateText } from './job-follow.js';
import { plural, relativeTime } from './output.js';
import { Progress, progressBar } from './progress-line.js';

/** `punctual job cancel`, `hold`, `release`, `retry`, `delete` and `redrive`: of one job, of several, or of many. */

interface Steering {
  readonly description: string;
  /** The verb of the API for many jobs. */
  readonly verb: ManyVerb;
  /** The states in which a job can be changed so. */
  readonly states: readonly JobState[];
  /** What is asked before many jobs are changed, of one and of several. */
  readonly question: readonly [one: string, several: string];
  /** What has become of jobs that were changed. */
  readonly done: string;
  /** Whether single jobs have no request of their own. */
  readonly onlyMany?: true;
}

const STEERINGS: Readonly<Record<string, Steering>> = {
  cancel: {
    description: 'cancel jobs; running ones are told to stop',
    verb: 'cancel',
    states: ['blocked', 'pending', 'running'],
    question: ['Cancel it?', 'Cancel them?'],
    done: 'cancelled',
  },
  hold: {
    description: 'keep waiting jobs from starting until they are released',
    verb: 'hold',
    states: ['blocked', 'pending'],
    question: ['Put it on hold?', 'Put them on hold?'],
    done: 'put on hold',
  },
  release: {
    description: 'let held jobs start',
    verb: 'release',
    states: ['blocked', 'pending'],
    question: ['Release it?', 'Release them?'],
    done: 'released',
  },
  retry: {
    description:
      'run failed or cancelled jobs again; with filters the failed ones, unless --state says otherwise',
    verb: 'redrive',
    states: ['failed', 'cancelled'],
    question: ['Run it again?', 'Run them again?'],
    done: 'sent round again',
  },
  delete: {
    description: 'delete jobs that have ended, with their keys and logs',
    verb: 'delete',
    states: ['succeeded', 'failed', 'cancelled', 'skipped'],
    question: [
      'Delete it for good, with its key and log?',
      'Delete them for good, with their keys and logs?',
    ],
    done: 'deleted',
    onlyMany: true,
  },
};

interface ManyValues extends JobFilterValues {
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** Adds the commands that change jobs. */
export function addSteerCommands(job: Command, cli: Cli): void {
  for (const [name, steering] of Object.entries(STEERINGS)) {
    const command = job
      .command(name)
      .description(steering.description)
      .argument('[ids...]', 'the ids of the jobs; or else filters, which are asked about first');
    addFilterOptions(command, steering.states)
      .option('--all', 'every job that this can be done to')
      .option('--dry-run', 'only count them')
      .option('-y, --yes', 'do it without asking');
    callsServer<ManyValues>(cli, command, (call) => steer(name, steering, call));
  }
}

/** Adds `job redrive`, which asks nothing. */
export function addRedriveCommand(job: Command, cli: Cli): void {
  const command = job
    .command('redrive')
    .description('run failed jobs again without asking; as `job retry --yes`');
  addFilterOptions(command, STEERINGS.retry!.states)
    .option('--all', 'every failed job')
    .option('--dry-run', 'only count them');
  callsServer<ManyValues>(cli, command, (call) =>
    steerMany('redrive', STEERINGS.retry!, { ...call, options: { ...call.options, yes: true } }),
  );
}

async function steer(name: string, steering: Steering, call: ServerCall<ManyValues>): Promise<void> {
  const { args, options } = call;
  if (args.length === 0) return steerMany(name, steering, call);
  if (options.all || Object.keys(filterOf(options)).length > 0) {
    throw new PunctualError('USAGE', 'Give the ids of jobs, or filters, not both.');
  }
  if (args.length > 1 || steering.onlyMany || options.dryRun) return steerNamed(steering, call);
  const path = `/v1/jobs/${encodeURIComponent(args[0]!)}`;
  const toldBefore = name === 'cancel' ? await toldToStopAt(call, path) : null;
  const changed = await call.api.request<Job>('POST', `${path}/${name}`, { signal: call.cli.interrupted });
  const told = name === 'cancel' && changed.state === 'running' ? stopText(toldBefore, call.cli.now()) : '';
  call.output.document(changed, () => `${changed.id}  ${printable(stateText(changed))}${told}\n`);
}

/** When somebody asked before for a running job to be cancelled; null if nobody did, or the key may not read it. */
async function toldToStopAt({ api, cli }: ServerCall<ManyValues>, path: string): Promise<string | null> {
  try {
    return (await api.request<Job>('GET', path, { signal: cli.interrupted })).cancelRequestedAt;
  } catch (error) {
    if (error instanceof PunctualError && error.code === 'FORBIDDEN') return null;
    throw error;
  }
}

function stopText(toldBefore: string | null, now: number): string {
  if (toldBefore === null) return '; told to stop';
  return `; was told to stop already, ${relativeTime(toldBefore, now)}, and has not confirmed yet`;
}

/** Changes the jobs that were named, and prints a line for each. */
async function steerNamed(steering: Steering, call: ServerCall<ManyValues>): Promise<void> {
  const { args: ids, options, output } = call;
  const result = await change(steering, { ids }, call, options.dryRun === true, ids.length);
  const refused = new Map(result.refused.map((job) => [job.id, job]));
  const [only] = result.refused;
  if (only && ids.length === 1 && isErrorCode(only.code)) throw new PunctualError(only.code, only.detail);
  const text = options.dryRun ? 'matches' : steering.done;
  const changed = [...new Set(ids)].filter((id) => !refused.has(id));
  finish(call, result, () => changed.map((id) => `${id}  ${text}\n`).join(''));
  if (changed.length === 0 && !output.json) output.note('No job was changed.');
}

async function steerMany(name: string, steering: Steering, call: ServerCall<ManyValues>): Promise<void> {
  const { cli, options, output } = call;
  const selection = selectionOf(name, options, cli.now());
  if (!options.dryRun && !options.yes && !canAsk(cli)) {
    const detail = `Nobody can be asked, because this is no terminal: add --yes to ${name} the jobs that match, or --dry-run to count them.`;
    throw new PunctualError('USAGE', detail);
  }
  const counted = await changeJobs(call.api, steering.verb, selection, {
    dryRun: true,
    signal: cli.interrupted,
  });
  const { matched, more } = counted;
  if (options.dryRun || matched === 0) {
    return finish(call, counted, () => `${matching(matched, more)}\n`);
  }
  const question = steering.question[matched === 1 && !more ? 0 : 1];
  if (!options.yes && !(await askYesNo(cli, `${matching(matched, more)}. ${question}`))) {
    output.note('Nothing was changed.');
    return call.exitWith(1);
  }
  const result = await change(steering, selection, call, false, matched);
  finish(call, result, () => `${plural(result.changed, 'job')} ${steering.done}\n`);
  const missed = result.matched - result.changed - result.refused.length;
  if (missed > 0 && !output.json)
    output.note(`${plural(missed, 'job')} had changed meanwhile and did not match any more.`);
}

/** Changes jobs with progress on stderr; says how far it came when it is interrupted or fails. */
async function change(
  steering: Steering,
  selection: JobSelection,
  { api, cli, output }: ServerCall<ManyValues>,
  dryRun: boolean,
  expected: number,
): Promise<ManyResult> {
  const progress = new Progress({ screen: cli.stderr, now: cli.now });
  let last: ManyProgress | undefined;
  const onProgress = (now: ManyProgress) => {
    last = now;
    if (!now.more) return;
    const total = Math.max(expected, now.matched);
    const text = `${now.changed} of ${total} jobs ${steering.done}`;
    progress.show(`${progressBar(now.matched / total, 30)} ${text}`, text);
  };
  try {
    return await changeJobs(api, steering.verb, selection, { dryRun, signal: cli.interrupted, onProgress });
  } catch (error) {
    progress.clear();
    // After any other error than an interruption between two parts, the last part may have changed more.
    const atLeast = error === cli.interrupted.reason ? '' : 'At least ';
    if (last)
      output.note(`${atLeast}${plural(last.changed, 'job')} ${steering.done} before this ended early.`);
    throw error;
  } finally {
    progress.clear();
  }
}

/** What the options choose. Durations count from `now`, however long the answer to the question takes. */
function selectionOf(name: string, options: ManyValues, now: number): JobSelection {
  const filter = filterOf(options);
  const isFiltered = Object.keys(filter).length > 0;
  if (isFiltered && options.all) throw new PunctualError('USAGE', 'Give --all or filters, not both.');
  if (isFiltered) return { filter: fixedFilter(filter, now) };
  // A dry run changes nothing, so it may count all without being told to.
  if (options.all || options.dryRun) return { all: true };
  const example = `such as \`punctual job ${name} --queue NAME\``;
  const ids = name === 'redrive' ? '' : 'the ids of jobs, ';
  throw new PunctualError('USAGE', `Give ${ids}filters ${example}, or --all for every job.`);
}

/** Prints the result, a line for each job that was refused, and sets the exit code that these have in common. */
function finish(call: ServerCall<ManyValues>, result: ManyResult, text: () => string): void {
  const { output, options } = call;
  const { refused } = result;
  output.document({ ...result, dryRun: options.dryRun === true }, text);
  if (!output.json) for (const { detail, code } of refused) output.note(printable(`${detail} (${code})`));
  if (refused.length > 0) call.exitWith(exitCodeOf(refused));
}

function exitCodeOf(refused: readonly RefusedJob[]): number {
  const codes = new Set(refused.map(({ code }) => (isErrorCode(code) ? ERROR_CODES[code].exit : 1)));
  return codes.size === 1 ? [...codes][0]! : 1;
}

function matching(matched: number, more: boolean): string {
  if (more) return `At least ${plural(matched, 'job')} match`;
  return matched === 1 ? '1 job matches' : `${matched} jobs match`;
}
