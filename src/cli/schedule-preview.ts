import type { Command } from 'commander';
import type { PreviewAnswer } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { moment, wholeNumber } from './option-values.js';
import { addWhenOptions, type WhenOptions, whenOf } from './schedule-create.js';
import type { Cell, Column } from './table.js';

interface PreviewOptions extends WhenOptions {
  readonly from?: string;
  readonly count?: number;
}

const COLUMNS: readonly Column[] = [{ header: 'AT' }, { header: 'THERE' }, { header: 'NOTE', shrink: true }];

/** `punctual schedule preview`: when an expression is due, without making a schedule. */
export function addPreviewCommand(schedule: Command, cli: Cli): void {
  const command = schedule.command('preview').description('show the next moments of an expression');
  addWhenOptions(command)
    .option('--from <moment>', 'the first moment to look at; default now', moment)
    .option('--count <n>', 'how many to show', wholeNumber(1, 1_000));
  callsServer<PreviewOptions>(cli, command, async ({ api, output, options }) => {
    const { from, count, timezone = 'UTC' } = options;
    const body = { ...whenOf(options), ...(from && { from }), ...(count && { count }) };
    const answer = await api.request<PreviewAnswer>('POST', '/v1/schedules/preview', {
      body,
      signal: cli.interrupted,
      retry: true,
    });
    const there = clockOf(timezone);
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
