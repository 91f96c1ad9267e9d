import { type Command, Option } from 'commander';
import type { ApiClient } from '../client/api-client.js';
import { putSchedule } from '../client/schedule-handle.js';
import { parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { jitterOf } from '../core/schedule/jitter.js';
import { type ScheduleDefinition, TIMING_FIELDS } from '../core/schedule.js';
import type { PreviewAnswer, ScheduleView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { moment, wholeNumber } from './option-values.js';
import type { Cell, Column } from './output.js';
import {
  addDefinitionOptions,
  addWhenOptions,
  type DefinitionOptions,
  definitionOf,
  RUN_OPTIONS,
  SAY_WHAT,
  type WhenOptions,
  whenOf,
} from './schedule-options.js';
import { scheduleDetails, schedulePath } from './schedule-text.js';
import { WIDE } from './watch.js';

interface CreateOptions extends DefinitionOptions {
  readonly paused?: boolean;
  readonly replace?: boolean;
}

/** Refuses what says nothing, or several things, about when a schedule is due, in the words of the command line. */
function mustSayWhen(when: ScheduleDefinition): void {
  if (TIMING_FIELDS.filter((name) => when[name] !== undefined).length === 1) return;
  throw new PunctualError('USAGE', 'Say when it is due: give exactly one of --cron, --every and --at.');
}

/** The same about what it runs. */
function mustSayWhat(options: CreateOptions): void {
  if (RUN_OPTIONS.filter((name) => options[name] !== undefined).length !== 1)
    throw new PunctualError('USAGE', SAY_WHAT);
  if (options.input !== undefined && options.workflow === undefined)
    throw new PunctualError('USAGE', '--input goes with --workflow; the input of a task is its --payload.');
}

/** `punctual schedule create`. */
export function addCreateCommand(schedule: Command, cli: Cli): void {
  const command = schedule.command('create').description('create a schedule').argument('<name>', 'its name');
  addDefinitionOptions(command)
    .option('--paused', 'create it paused')
    .addOption(
      new Option('--replace', 'replace the schedule of that name, if there is one').conflicts('paused'),
    );
  callsServer<CreateOptions>(cli, command, async ({ api, output, options, args }) => {
    mustSayWhen(whenOf(options));
    mustSayWhat(options);
    const name = args[0]!;
    const { paused } = options;
    const definition = { ...(await definitionOf(cli, options)), ...(paused !== undefined && { paused }) };
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
