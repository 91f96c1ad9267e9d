import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ApiClient } from '../client/api-client.js';
import { putSchedule } from '../client/schedule-handle.js';
import { parseDuration } from '../core/duration.js';
import type { Delivery, Labels } from '../core/job.js';
import {
  CATCH_UPS,
  DST_GAPS,
  DST_OVERLAPS,
  OVERLAPS,
  type ScheduleDefinition,
} from '../core/schedule-definition.js';
import type { ScheduleView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { durationText, label, moment, wholeNumber } from './option-values.js';
import { schedulePath } from './schedule-path.js';
import { scheduleDetails } from './schedule-view.js';
import { readPayload } from './submission.js';

/** Options that say when a schedule is due. */
export interface WhenOptions {
  readonly cron?: string;
  readonly every?: string;
  readonly at?: string;
  readonly timezone?: string;
  readonly dstGap?: (typeof DST_GAPS)[number];
  readonly dstOverlap?: (typeof DST_OVERLAPS)[number];
  readonly startAt?: string;
  readonly endAt?: string;
}

interface CreateOptions extends WhenOptions {
  readonly task: string;
  readonly payload?: string;
  readonly catchUp?: NonNullable<ScheduleDefinition['catchUp']>;
  readonly overlap?: (typeof OVERLAPS)[number];
  readonly jitter?: string;
  readonly lateAfter?: string;
  readonly paused?: boolean;
  readonly replace?: boolean;
  readonly queue?: string;
  readonly priority?: number;
  readonly timeout?: string;
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
      new Option('--dst-gap <rule>', 'for times that a change of the clocks leaves out').choices(DST_GAPS),
    )
    .addOption(
      new Option('--dst-overlap <rule>', 'for times that a change of the clocks repeats').choices(
        DST_OVERLAPS,
      ),
    )
    .option('--start-at <moment>', 'not due before; an interval counts from here', moment)
    .option('--end-at <moment>', 'not due after', moment);
}

/** When a schedule is due, as the API takes it. */
export function whenOf(options: WhenOptions): ScheduleDefinition {
  const { dstGap, dstOverlap } = options;
  return {
    ...given(options, ['cron', 'every', 'at', 'timezone', 'startAt', 'endAt']),
    ...((dstGap ?? dstOverlap) !== undefined && {
      dst: { ...(dstGap && { gap: dstGap }), ...(dstOverlap && { overlap: dstOverlap }) },
    }),
  };
}

/** The options of these names that were given. */
function given<O extends object, N extends keyof O>(options: O, names: readonly N[]): Pick<O, N> {
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  ) as Pick<O, N>;
}

/** A policy of catching up: a word, or how far back. */
function catchUp(text: string): NonNullable<ScheduleDefinition['catchUp']> {
  if ((CATCH_UPS as readonly string[]).includes(text)) return text as (typeof CATCH_UPS)[number];
  if (parseDuration(text) !== null) return { within: text };
  throw new InvalidArgumentError('Expected none, latest, all, or a duration such as 6h.');
}

/** `punctual schedule create`. */
export function addCreateCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('create')
    .description('make a schedule')
    .argument('<name>', 'its name')
    .requiredOption('--task <name>', 'the task to run')
    .option('--payload <json>', 'its input: JSON, @file, or - for stdin');
  addWhenOptions(command)
    .option(
      '--catch-up <policy>',
      'what still runs after downtime: none, latest, all, or those within 6h',
      catchUp,
    )
    .addOption(
      new Option('--overlap <rule>', 'when one is due while the job before still lives').choices(OVERLAPS),
    )
    .option('--jitter <duration>', 'move each occurrence by a bit of its own, up to this', durationText)
    .option('--late-after <duration>', 'started later than this is late; default 30s', durationText)
    .option('--paused', 'begin paused')
    .addOption(
      new Option('--replace', 'change the schedule of that name into this one, if there is one').conflicts(
        'paused',
      ),
    )
    .option('--queue <name>', 'the queue to wait in')
    .option('--priority <n>', 'from 1 to 9, 9 first', wholeNumber(1, 9))
    .option('--timeout <duration>', 'longest time of one attempt', durationText)
    .option('--max-attempts <n>', 'attempts in all, the first one included', wholeNumber(1, 1_000))
    .option('--concurrency-key <key>', 'jobs with the same one run one after another')
    .option('--requires <label>', 'a label the worker must have, such as region=eu; repeatable', label)
    .addOption(
      new Option('--delivery <rule>', 'what happens when a worker is lost').choices([
        'at-least-once',
        'at-most-once',
      ]),
    );
  callsServer<CreateOptions>(cli, command, async ({ api, output, options, args }) => {
    const payload = await readPayload(cli, options.payload);
    const name = args[0]!;
    const definition = {
      ...whenOf(options),
      ...given(options, ['task', 'catchUp', 'overlap', 'jitter', 'lateAfter', 'paused', 'queue', 'priority']),
      ...given(options, ['timeout', 'concurrencyKey', 'requires', 'delivery']),
      ...(options.maxAttempts !== undefined && { retry: { maxAttempts: options.maxAttempts } }),
      ...(payload !== undefined && { payload }),
    };
    const made = options.replace
      ? await replace(api, name, definition, cli.interrupted)
      : await api.request<ScheduleView>('POST', '/v1/schedules', {
          body: { name, ...definition },
          signal: cli.interrupted,
        });
    output.document(made, () => scheduleDetails(output, made));
  });
}

/** Makes the schedule, or changes the one that has its name from its next occurrence on. */
async function replace(
  api: ApiClient,
  name: string,
  definition: ScheduleDefinition,
  signal: AbortSignal,
): Promise<ScheduleView> {
  await putSchedule(api, name, definition);
  return api.request<ScheduleView>('GET', schedulePath(name), { signal });
}
