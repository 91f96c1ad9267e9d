import { type Command, InvalidArgumentError, Option } from 'commander';
import type { JobFilterOptions } from '../client/job-filter.js';
import { parseDuration } from '../core/duration.js';
import { isEnded, JOB_STATES, type JobState } from '../core/job.js';
import { type Scalar, scalarOf } from '../core/payload-filter.js';
import { commaList, given, moment, wholeNumber } from './option-values.js';

/** The options that say which jobs are meant, for lists and for changes of many. */
export type JobFilterValues = {
  readonly [N in keyof JobFilterOptions]?: N extends 'since' | 'until' ? string : JobFilterOptions[N];
};

interface FilterOption {
  readonly flags: string;
  readonly description: string;
  readonly parse?: (text: string, previous: never) => unknown;
  /** Whether it makes sense for jobs in these states; default always. */
  readonly suits?: (states: readonly JobState[]) => boolean;
}

const mayHaveEnded = (states: readonly JobState[]) => states.some(isEnded);
const mayHaveStarted = (states: readonly JobState[]) => mayHaveEnded(states) || states.includes('running');
const attempts = wholeNumber(0, 2 ** 31 - 1);

/** The filters, by the names that the API gives them. */
const FILTERS: Readonly<Record<Exclude<keyof JobFilterOptions, 'state'>, FilterOption>> = {
  task: { flags: '--task <name>', description: 'only jobs of this task' },
  queue: { flags: '--queue <name>', description: 'only jobs of this queue' },
  key: { flags: '--key <key>', description: 'only the job with this key' },
  keyPrefix: { flags: '--key-prefix <text>', description: 'only jobs whose keys begin so' },
  schedule: { flags: '--schedule <name>', description: 'only jobs of this schedule' },
  workflow: { flags: '--workflow <id>', description: 'only steps of this workflow' },
  batch: { flags: '--batch <id>', description: 'only members of this batch' },
  since: {
    flags: '--since <time>',
    description: 'only jobs created since then: a moment, or how long ago, such as 2h',
    parse: momentOrAgo,
  },
  until: {
    flags: '--until <time>',
    description: 'only jobs created before then: a moment, or how long ago',
    parse: momentOrAgo,
  },
  worker: {
    flags: '--worker <id>',
    description: 'only jobs that this worker runs or ran',
    suits: mayHaveStarted,
  },
  minAttempts: {
    flags: '--min-attempts <n>',
    description: 'only jobs with at least so many attempts',
    parse: attempts,
  },
  maxAttempts: {
    flags: '--max-attempts <n>',
    description: 'only jobs with at most so many attempts',
    parse: attempts,
  },
  errorCode: {
    flags: '--error-code <code>',
    description: 'only jobs that ended with this error code',
    suits: mayHaveEnded,
  },
  fingerprint: {
    flags: '--fingerprint <text>',
    description: 'only failed jobs of this group of `job errors`',
    suits: mayHaveEnded,
  },
  payload: {
    flags: '--payload <path=value>',
    description: 'only jobs whose payload has this value there, such as customer=7 (repeatable)',
    parse: payloadField,
  },
};

const NAMES = ['state', ...(Object.keys(FILTERS) as (keyof typeof FILTERS)[])] as const;

/** Adds the options that make sense for jobs in these states. */
export function addFilterOptions(command: Command, states: readonly JobState[] = JOB_STATES): Command {
  const state = new Option('--state <states>', 'only jobs in this state, or in one of several with commas');
  command.addOption(state.choices(states).argParser(statesAmong(states)));
  for (const { flags, description, parse, suits = () => true } of Object.values(FILTERS)) {
    const option = new Option(flags, description);
    if (suits(states))
      command.addOption(parse ? option.argParser(parse as (text: string) => unknown) : option);
  }
  return command;
}

/** The filter that was given. */
export function filterOf(options: JobFilterValues): JobFilterOptions {
  return given(options, NAMES) as JobFilterOptions;
}

/** States with commas between them; one alone stays as it is. */
function statesAmong(states: readonly JobState[]): (text: string) => JobState | readonly JobState[] {
  return (text) => {
    const named = commaList(text) as readonly JobState[];
    if (!named.every((state) => states.includes(state))) {
      throw new InvalidArgumentError(`Allowed choices are ${states.join(', ')}.`);
    }
    return named.length === 1 ? named[0]! : named;
  };
}

/** Collects `path=value`; the value is JSON if it is a scalar of JSON, and otherwise text. */
function payloadField(
  text: string,
  previous: Readonly<Record<string, Scalar>> | undefined,
): Readonly<Record<string, Scalar>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Expected path=value, such as customer=7 or items.0.sku=A-1.');
  const path = text.slice(0, at);
  if (previous && Object.hasOwn(previous, path)) {
    throw new InvalidArgumentError(`The field ${path} is given twice.`);
  }
  const scalar = scalarOf(text.slice(at + 1));
  if (scalar === null) {
    throw new InvalidArgumentError(
      'The number has more digits than can be sent; compare it as text, in quotes.',
    );
  }
  return { ...previous, [path]: scalar.value };
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
