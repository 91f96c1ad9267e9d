import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ApiClient } from '../client/api-client.js';
import { putSchedule } from '../client/schedule-handle.js';
import type { BatchSubmission } from '../core/batch.js';
import { type Duration, parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { Delivery, Labels } from '../core/job.js';
import { jitterOf } from '../core/schedule/jitter.js';
import {
  CATCH_UPS,
  DST_GAPS,
  DST_OVERLAPS,
  OVERLAPS,
  type ScheduleDefinition,
  TIMING_FIELDS,
} from '../core/schedule.js';
import type { PreviewAnswer, ScheduleView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { addHttpOptions, type HttpOptions, httpTargetOf } from './http-options.js';
import { mustHaveOneStdin, readJsonInput, readWorkflowInput } from './json-input.js';
import { durationText, given, label, moment, wholeNumber } from './option-values.js';
import type { Cell, Column } from './output.js';
import { scheduleDetails, schedulePath } from './schedule-text.js';
import { WIDE } from './watch.js';

/** Options that say when a schedule is due. */
interface WhenOptions {
  readonly cron?: string;
  readonly every?: Duration;
  readonly at?: string;
  readonly timezone?: string;
  readonly dstGap?: (typeof DST_GAPS)[number];
  readonly dstOverlap?: (typeof DST_OVERLAPS)[number];
  readonly startAt?: string;
  readonly endAt?: string;
}

interface CreateOptions extends WhenOptions, HttpOptions {
  readonly task?: string;
  readonly workflow?: string;
  readonly batch?: string;
  readonly payload?: string;
  readonly input?: string;
  readonly catchUp?: NonNullable<ScheduleDefinition['catchUp']>;
  readonly overlap?: (typeof OVERLAPS)[number];
  readonly jitter?: Duration;
  readonly lateAfter?: Duration;
  readonly paused?: boolean;
  readonly replace?: boolean;
  readonly queue?: string;
  readonly priority?: number;
  readonly timeout?: Duration;
  readonly maxAttempts?: number;
  readonly concurrencyKey?: string;
  readonly requires?: Labels;
  readonly delivery?: Delivery;
}

/** Adds the options that say when a schedule is due. */
function addWhenOptions(command: Command): Command {
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

/** Refuses what says nothing, or several things, about when a schedule is due, in the words of the command line. */
function mustSayWhen(when: ScheduleDefinition): void {
  if (TIMING_FIELDS.filter((name) => when[name] !== undefined).length === 1) return;
  throw new PunctualError('USAGE', 'Say when it is due: give exactly one of --cron, --every and --at.');
}

/** The same about what it runs. */
function mustSayWhat({ task, workflow, batch, http, payload, input, data }: CreateOptions): void {
  if ([task, workflow, batch, http].filter((each) => each !== undefined).length !== 1) {
    const detail = 'Say what it runs: give exactly one of --task, --workflow, --batch and --http.';
    throw new PunctualError('USAGE', detail);
  }
  if (input !== undefined && workflow === undefined)
    throw new PunctualError('USAGE', '--input goes with --workflow; the input of a task is its --payload.');
  mustHaveOneStdin(batch, payload, input, data);
}

/** A catch-up policy: a word, or a duration. */
function catchUp(text: string): NonNullable<ScheduleDefinition['catchUp']> {
  if ((CATCH_UPS as readonly string[]).includes(text)) return text as (typeof CATCH_UPS)[number];
  if (parseDuration(text) !== null) return { within: text as Duration };
  throw new InvalidArgumentError('Expected none, latest, all, or a duration such as 6h.');
}

/** `punctual schedule create`. */
export function addCreateCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('create')
    .description('create a schedule')
    .argument('<name>', 'its name')
    .option('--task <name>', 'the task to run')
    .option('--workflow <name>', 'the workflow definition to start, instead of a task')
    .option('--batch <file>', 'a file with the batch to start, instead of a task, as JSON; - for stdin')
    .option('--payload <json>', 'the input of the task or workflow: JSON, @file, or - for stdin');
  command.option('--input <json>', 'the same as --payload, for a workflow');
  addHttpOptions(command);
  addWhenOptions(command)
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
    .option('--paused', 'create it paused')
    .addOption(
      new Option('--replace', 'replace the schedule of that name, if there is one').conflicts('paused'),
    )
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
  callsServer<CreateOptions>(cli, command, async ({ api, output, options, args }) => {
    const when = whenOf(options);
    mustSayWhen(when);
    mustSayWhat(options);
    const payload = await readWorkflowInput(cli, options);
    const target = await httpTargetOf(cli, options);
    const batch = options.batch === undefined ? undefined : await readJsonInput(cli, options.batch);
    const name = args[0]!;
    const definition = {
      ...when,
      ...given(options, ['task', 'workflow']),
      ...(batch !== undefined && { batch: batch as BatchSubmission }),
      ...(target && { target }),
      ...given(options, ['catchUp', 'overlap', 'jitter', 'lateAfter', 'paused', 'queue', 'priority']),
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

/** Creates the schedule, or replaces the one of its name from its next occurrence on. */
async function replace(
  api: ApiClient,
  name: string,
  definition: ScheduleDefinition,
  signal: AbortSignal,
): Promise<ScheduleView> {
  await putSchedule(api, name, definition);
  return api.request<ScheduleView>('GET', schedulePath(name), { signal });
}

interface PreviewOptions extends WhenOptions {
  readonly from?: string;
  readonly count?: number;
}

const AT: Column = { header: 'AT' };
const STARTS: Column = { header: 'STARTS' };
const REST: readonly Column[] = [
  { header: 'THERE', drop: 1 },
  { header: 'NOTE', shrink: true },
];

/** The timing of a schedule, without the fields that are null in its view. */
function timingOf(view: ScheduleView): ScheduleDefinition {
  const names = [...TIMING_FIELDS, 'timezone', 'dst', 'startAt', 'endAt'] as const;
  return Object.fromEntries(names.map((name) => [name, view[name]]).filter(([, value]) => value != null));
}

/** The timing with changes applied; a new expression (cron, every, at) replaces the old one. */
function changed(timing: ScheduleDefinition, options: ScheduleDefinition): ScheduleDefinition {
  const replaces = TIMING_FIELDS.some((name) => options[name] !== undefined);
  const kept = Object.entries(timing).filter(
    ([name]) => !(replaces && (TIMING_FIELDS as readonly string[]).includes(name)),
  );
  const dst = { ...timing.dst, ...options.dst };
  return { ...Object.fromEntries(kept), ...options, ...(Object.keys(dst).length > 0 && { dst }) };
}

/** When an existing schedule is due with these changes. Without `startAt` its intervals count from its creation. */
function whenOfSchedule(view: ScheduleView, options: ScheduleDefinition): ScheduleDefinition {
  const when = changed(timingOf(view), options);
  const everyMs = when.every === undefined ? null : parseDuration(when.every);
  if (everyMs === null || when.startAt !== undefined) return when;
  return { ...when, startAt: new Date(Date.parse(view.createdAt) + everyMs).toISOString() };
}

/** `punctual schedule preview`: the next due times of a schedule or an expression. */
export function addPreviewCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('preview')
    .description('show the next due times of a schedule or of an expression')
    .argument('[name]', 'a schedule; options show it with these changes');
  addWhenOptions(command)
    .option('--from <moment>', 'show due times after this; default now', moment)
    .option('--count <n>', 'how many to show', wholeNumber(1, 1_000))
    .option(...WIDE);
  callsServer<PreviewOptions>(cli, command, async ({ api, output, options, args }) => {
    const { from, count } = options;
    const signal = cli.interrupted;
    const changes = whenOf(options);
    const [name] = args;
    if (name === undefined) mustSayWhen(changes);
    const view =
      name === undefined ? null : await api.request<ScheduleView>('GET', schedulePath(name), { signal });
    const when = view === null ? changes : whenOfSchedule(view, changes);
    const body = { ...when, ...(from && { from }), ...(count && { count }) };
    const answer = await api.request<PreviewAnswer>('POST', '/v1/schedules/preview', {
      body,
      signal,
      retry: true,
    });
    const there = clockOf(when.timezone ?? 'UTC');
    const delay = view === null ? null : delayOf(view);
    if (delay === null) {
      const rows = answer.data.map((each): Cell[] => [each.at, there(each.at), each.note ?? '']);
      output.document(answer, () => output.table([AT, ...REST], rows));
      return;
    }
    const data = answer.data.map((each) => ({ ...each, dueAt: delay(each.at) }));
    const rows = data.map((each): Cell[] => [each.at, each.dueAt, there(each.at), each.note ?? '']);
    output.document({ data }, () => output.table([AT, STARTS, ...REST], rows));
  });
}

/** Delays a due time by the jitter that the schedule has for it; null for a schedule without jitter. */
function delayOf({ id, jitter }: ScheduleView): ((at: string) => string) | null {
  const jitterMs = parseDuration(jitter ?? '0ms') ?? 0;
  if (jitterMs === 0) return null;
  return (at) => new Date(Date.parse(at) + jitterOf(id, Date.parse(at), jitterMs)).toISOString();
}

/** Formats a time in a zone, which the server has checked. */
function clockOf(timeZone: string): (time: string) => string {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'short',
  });
  return (time) => {
    const part = Object.fromEntries(
      format.formatToParts(new Date(time)).map(({ type, value }) => [type, value]),
    );
    const date = `${part.year}-${part.month}-${part.day}`;
    return `${part.weekday} ${date} ${part.hour}:${part.minute}:${part.second} ${part.timeZoneName}`;
  };
}
