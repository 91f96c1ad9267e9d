import { type Command, InvalidArgumentError, Option } from 'commander';
import type { BatchSubmission } from '../core/batch.js';
import { type Duration, parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { Delivery, Labels } from '../core/job.js';
import { CATCH_UPS, DST_GAPS, DST_OVERLAPS, OVERLAPS, type ScheduleDefinition } from '../core/schedule.js';
import type { Cli } from './cli.js';
import { addExecOptions, type ExecOptions, execTargetOf } from './exec-options.js';
import { addHttpOptions, type HttpOptions, httpTargetOf } from './http-options.js';
import { mustHaveOneStdin, readJsonInput, readWorkflowInput } from './json-input.js';
import { durationText, given, label, moment, wholeNumber } from './option-values.js';

/** What a schedule says, as options. */

/** Options that say when a schedule is due. */
export interface WhenOptions {
  readonly cron?: string;
  readonly every?: Duration;
  readonly at?: string;
  readonly timezone?: string;
  readonly dstGap?: (typeof DST_GAPS)[number];
  readonly dstOverlap?: (typeof DST_OVERLAPS)[number];
  readonly startAt?: string;
  readonly endAt?: string;
}

/** Options that say everything about a schedule but its name. */
export interface DefinitionOptions extends WhenOptions, HttpOptions, ExecOptions {
  readonly task?: string;
  readonly workflow?: string;
  readonly batch?: string;
  readonly payload?: string;
  readonly input?: string;
  readonly catchUp?: NonNullable<ScheduleDefinition['catchUp']>;
  readonly overlap?: (typeof OVERLAPS)[number];
  readonly jitter?: Duration;
  readonly lateAfter?: Duration;
  readonly queue?: string;
  readonly priority?: number;
  readonly timeout?: Duration;
  readonly maxAttempts?: number;
  readonly concurrencyKey?: string;
  readonly requires?: Labels;
  readonly delivery?: Delivery;
}

/** Adds the options that say when a schedule is due. */
export function addWhenOptions(command: Command): Command {
  return command
    .option('--cron <expression>', 'due by a cron expression, such as "30 2 * * *" or @daily')
    .option('--every <duration>', 'due again and again after this time, such as 15m', durationText)
    .option('--at <moment>', 'due once, such as 2026-12-24T18:00:00Z', moment)
    .option('--timezone <zone>', 'the zone of the expression, such as Europe/Berlin; default UTC')
    .addOption(
      new Option('--dst-gap <rule>', 'for times that do not exist because clocks go forward').choices(
        DST_GAPS,
      ),
    )
    .addOption(
      new Option('--dst-overlap <rule>', 'for times that occur twice because clocks go back').choices(
        DST_OVERLAPS,
      ),
    )
    .option('--start-at <moment>', 'not due before this; an interval counts from it', moment)
    .option('--end-at <moment>', 'not due after this', moment);
}

/** When a schedule is due, in the form of the API. */
export function whenOf(options: WhenOptions): ScheduleDefinition {
  const { dstGap, dstOverlap } = options;
  return {
    ...given(options, ['cron', 'every', 'at', 'timezone', 'startAt', 'endAt']),
    ...((dstGap ?? dstOverlap) !== undefined && {
      dst: { ...(dstGap && { gap: dstGap }), ...(dstOverlap && { overlap: dstOverlap }) },
    }),
  };
}

/** A catch-up policy: a word, or a duration. */
function catchUp(text: string): NonNullable<ScheduleDefinition['catchUp']> {
  if ((CATCH_UPS as readonly string[]).includes(text)) return text as (typeof CATCH_UPS)[number];
  if (parseDuration(text) !== null) return { within: text as Duration };
  throw new InvalidArgumentError('Expected none, latest, all, or a duration such as 6h.');
}

/** Adds the options that say everything about a schedule but its name. */
export function addDefinitionOptions(command: Command): Command {
  command
    .option('--task <name>', 'the task to run')
    .option('--workflow <name>', 'the workflow definition to start, instead of a task')
    .option('--batch <file>', 'a file with the batch to start, instead of a task, as JSON; - for stdin')
    .option('--payload <json>', 'the input of the task or workflow: JSON, @file, or - for stdin');
  command.option('--input <json>', 'the same as --payload, for a workflow');
  addHttpOptions(command);
  addExecOptions(command);
  return addWhenOptions(command)
    .option(
      '--catch-up <policy>',
      'which missed occurrences run after downtime: none, latest, all, or a duration such as 6h',
      catchUp,
    )
    .addOption(
      new Option(
        '--overlap <rule>',
        'what happens when an occurrence is due before the previous run has ended',
      ).choices(OVERLAPS),
    )
    .option('--jitter <duration>', 'delay each occurrence by an amount of its own, up to this', durationText)
    .option('--late-after <duration>', 'a start later than this counts as late; default 30s', durationText)
    .option('--queue <name>', 'the queue to wait in')
    .option('--priority <n>', 'from 1 to 9, 9 first', wholeNumber(1, 9))
    .option('--timeout <duration>', 'the longest time an attempt may take', durationText)
    .option('--max-attempts <n>', 'attempts in all, the first one included', wholeNumber(1, 1_000))
    .option(
      '--concurrency-key <key>',
      'jobs of the same key run one after another, or as many at once as the queue allows',
    )
    .option('--requires <label>', 'a label the worker must have, such as region=eu; repeatable', label)
    .addOption(
      new Option('--delivery <rule>', 'whether a lost attempt is repeated').choices([
        'at-least-once',
        'at-most-once',
      ]),
    );
}

/** What the options say, in the form of the API. */
export async function definitionOf(cli: Cli, options: DefinitionOptions): Promise<ScheduleDefinition> {
  mustSayOneThing(options);
  const payload = await readWorkflowInput(cli, options);
  const target = (await httpTargetOf(cli, options)) ?? execTargetOf(options);
  const batch = options.batch === undefined ? undefined : await readJsonInput(cli, options.batch);
  return {
    ...whenOf(options),
    ...given(options, ['task', 'workflow']),
    ...(batch !== undefined && { batch: batch as BatchSubmission }),
    ...(target && { target }),
    ...given(options, ['catchUp', 'overlap', 'jitter', 'lateAfter', 'queue', 'priority']),
    ...given(options, ['timeout', 'concurrencyKey', 'requires', 'delivery']),
    ...(options.maxAttempts !== undefined && { retry: { maxAttempts: options.maxAttempts } }),
    ...(payload !== undefined && { payload }),
  };
}

/** Refuses several things to run, in the words of the command line. */
function mustSayOneThing(options: DefinitionOptions): void {
  const { batch, payload, input, data } = options;
  if (RUN_OPTIONS.filter((name) => options[name] !== undefined).length > 1)
    throw new PunctualError('USAGE', SAY_WHAT);
  mustHaveOneStdin(batch, payload, input, data);
}

/** Options of which one says what a schedule runs. */
export const RUN_OPTIONS = ['task', 'workflow', 'batch', 'http', 'exec', 'command'] as const;
/** What somebody is told who gives none or several of them. */
export const SAY_WHAT =
  'Say what it runs: give exactly one of --task, --workflow, --batch, --http, --exec and --command.';
