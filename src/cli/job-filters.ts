import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../core/duration.js';
import { isEnded, JOB_STATES, type JobState } from '../core/job.js';
import { given, moment } from './option-values.js';

/** The options that say which jobs are meant, for lists and for changes of many. */
export interface JobFilterValues {
  readonly state?: string;
  readonly task?: string;
  readonly queue?: string;
  readonly key?: string;
  readonly worker?: string;
  readonly schedule?: string;
  readonly since?: string;
  readonly until?: string;
  readonly errorCode?: string;
}

/** Adds the options that make sense for jobs in these states. */
export function addFilterOptions(command: Command, states: readonly JobState[] = JOB_STATES): Command {
  const mayHaveEnded = states.some(isEnded);
  command
    .addOption(new Option('--state <state>', 'only jobs in this state').choices(states))
    .option('--task <name>', 'only jobs of this task')
    .option('--queue <name>', 'only jobs of this queue')
    .option('--key <key>', 'only the job with this key')
    .option('--schedule <name>', 'only jobs of this schedule')
    .option(
      '--since <time>',
      'only jobs created since then: a moment, or how long ago, such as 2h',
      momentOrAgo,
    )
    .option('--until <time>', 'only jobs created before then: a moment, or how long ago', momentOrAgo);
  if (mayHaveEnded || states.includes('running'))
    command.option('--worker <id>', 'only jobs that this worker runs or ran');
  if (mayHaveEnded) command.option('--error-code <code>', 'only jobs that ended with this error code');
  return command;
}

/** The filter in the form of the API. */
export function filterOf(options: JobFilterValues): Readonly<Record<string, string>> {
  return given(options, [
    ...(['state', 'task', 'queue', 'key', 'worker', 'schedule', 'since', 'until', 'errorCode'] as const),
  ]) as Readonly<Record<string, string>>;
}

/** A moment in UTC, or a duration, which the node takes for so long ago. */
export function momentOrAgo(text: string): string {
  if (parseDuration(text) !== null) return text;
  try {
    return moment(text);
  } catch {
    throw new InvalidArgumentError(
      'Expected how long ago, such as 2h, or a moment such as 2026-12-24T18:00:00Z.',
    );
  }
}
