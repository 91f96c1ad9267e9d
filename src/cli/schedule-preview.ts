import type { Command } from 'commander';
import type { ApiClient } from '../client/api-client.js';
import { parseDuration } from '../core/duration.js';
import { type ScheduleDefinition, TIMING_FIELDS } from '../core/schedule.js';
import type { PreviewAnswer, ScheduleView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { moment, wholeNumber } from './option-values.js';
import { addWhenOptions, type WhenOptions, whenOf } from './schedule-create.js';
import { schedulePath } from './schedule-path.js';
import type { Cell, Column } from './table.js';

interface PreviewOptions extends WhenOptions {
  readonly from?: string;
  readonly count?: number;
}

const COLUMNS: readonly Column[] = [{ header: 'AT' }, { header: 'THERE' }, { header: 'NOTE', shrink: true }];

/** What a schedule says about when it is due; its view has nulls where nothing was said. */
function timingOf(view: ScheduleView): ScheduleDefinition {
  const names = [...TIMING_FIELDS, 'timezone', 'dst', 'startAt', 'endAt'] as const;
  return Object.fromEntries(names.map((name) => [name, view[name]]).filter(([, value]) => value != null));
}

/** The timing of a schedule with what the options say in its place; one expression replaces the other. */
function changed(timing: ScheduleDefinition, options: ScheduleDefinition): ScheduleDefinition {
  const replaces = TIMING_FIELDS.some((name) => options[name] !== undefined);
  const kept = Object.entries(timing).filter(
    ([name]) => !(replaces && (TIMING_FIELDS as readonly string[]).includes(name)),
  );
  const dst = { ...timing.dst, ...options.dst };
  return { ...Object.fromEntries(kept), ...options, ...(Object.keys(dst).length > 0 && { dst }) };
}

/** When the schedule is due with these changes. Its intervals count from when it was made, unless it says otherwise. */
async function whenOfSchedule(
  api: ApiClient,
  name: string,
  options: ScheduleDefinition,
  signal: AbortSignal,
): Promise<ScheduleDefinition> {
  const view = await api.request<ScheduleView>('GET', schedulePath(name), { signal });
  const when = changed(timingOf(view), options);
  const everyMs = when.every === undefined ? null : parseDuration(when.every);
  if (everyMs === null || when.startAt !== undefined) return when;
  return { ...when, startAt: new Date(Date.parse(view.createdAt) + everyMs).toISOString() };
}

/** `punctual schedule preview`: when a schedule or an expression is due, without making or changing any. */
export function addPreviewCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('preview')
    .description('show the next moments of a schedule or of an expression')
    .argument('[name]', 'a schedule; options show what would be if it were changed so');
  addWhenOptions(command)
    .option('--from <moment>', 'the first moment to look at; default now', moment)
    .option('--count <n>', 'how many to show', wholeNumber(1, 1_000));
  callsServer<PreviewOptions>(cli, command, async ({ api, output, options, args }) => {
    const { from, count } = options;
    const signal = cli.interrupted;
    const given = whenOf(options);
    const when = args[0] === undefined ? given : await whenOfSchedule(api, args[0], given, signal);
    const body = { ...when, ...(from && { from }), ...(count && { count }) };
    const answer = await api.request<PreviewAnswer>('POST', '/v1/schedules/preview', {
      body,
      signal,
      retry: true,
    });
    const there = clockOf(when.timezone ?? 'UTC');
    const rows = answer.data.map((each): Cell[] => [each.at, there(each.at), each.note ?? '']);
    output.document(answer, () => output.table(COLUMNS, rows));
  });
}

/** What the clocks of a zone, which the server has found to exist, show at a moment. */
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
