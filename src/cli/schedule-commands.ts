import type { Command } from 'commander';
import type { BackfillAnswer, OccurrenceView, Page, ScheduleView } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { moment, wholeNumber } from './option-values.js';
import { plural } from './output.js';
import { addChangeCommand } from './schedule-change.js';
import { addCreateCommand, addPreviewCommand } from './schedule-create.js';
import { occurrenceTable, scheduleDetails, schedulePath, scheduleTable } from './schedule-text.js';
import { WIDE, watched } from './watch.js';

const LARGEST_PAGE = 1_000;
const NAME = ['<name>', 'the name of the schedule'] as const;

/** `punctual schedule …`: creating, showing and controlling schedules. */
export function addScheduleCommands(program: Command, cli: Cli): void {
  const schedule = program.command('schedule').description('create, show and control schedules');
  addCreateCommand(schedule, cli);
  addChangeCommand(schedule, cli);
  addListCommand(schedule, cli);
  addGetCommand(schedule, cli);
  addPreviewCommand(schedule, cli);
  addSwitch(schedule, cli, 'pause', 'skip the occurrences of a schedule until it is resumed');
  addSwitch(schedule, cli, 'resume', 'continue a paused schedule with its next occurrence');
  addRunCommand(schedule, cli);
  addBackfillCommand(schedule, cli);
  addDeleteCommand(schedule, cli);
}

interface ListOptions {
  readonly limit: number;
  readonly after?: string;
}

function addListCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('list')
    .description('list schedules by name')
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 100)
    .option('--after <name>', 'begin after this name')
    .option(...WIDE);
  const show = async ({ api, output, options }: ServerCall<ListOptions>): Promise<void> => {
    const { limit, after } = options;
    const listing = { limit, query: { ...(after !== undefined && { after }) } };
    const page = await readPages<ScheduleView>(api, '/v1/schedules', { signal: cli.interrupted }, listing);
    output.document(page, () => scheduleTable(output, page.data, cli.now()));
    if (page.next !== null && !output.json) output.note(`There are more: use --after ${page.next}.`);
  };
  callsServer<ListOptions>(
    cli,
    command,
    watched(command, show, { events: () => ({ types: ['schedule.*'] }) }),
  );
}

interface GetOptions {
  readonly occurrences: number;
  readonly from?: string;
  readonly to?: string;
}

function addGetCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('get')
    .description('show one schedule and the newest part of its ledger')
    .argument(...NAME)
    .option('--occurrences <n>', 'how many occurrences to show', wholeNumber(1, LARGEST_PAGE), 10)
    .option('--from <moment>', 'only occurrences from then on', moment)
    .option('--to <moment>', 'only occurrences until then', moment)
    .option(...WIDE);
  const show = async ({ api, output, options, args }: ServerCall<GetOptions>): Promise<void> => {
    const path = schedulePath(args[0]!);
    const query = new URLSearchParams({ limit: String(options.occurrences) });
    if (options.from !== undefined) query.set('from', options.from);
    if (options.to !== undefined) query.set('to', options.to);
    const signal = cli.interrupted;
    const view = await api.request<ScheduleView>('GET', path, { signal });
    const ledger = await api.request<Page<OccurrenceView>>('GET', `${path}/occurrences?${query}`, { signal });
    output.document({ ...view, occurrences: ledger.data }, () => {
      const details = scheduleDetails(output, view);
      return ledger.data.length === 0 ? details : `${details}\n${occurrenceTable(output, ledger.data)}`;
    });
  };
  const events = ({ args }: ServerCall<GetOptions>) => ({ schedule: args[0]! });
  callsServer<GetOptions>(cli, command, watched(command, show, { events }));
}

function addSwitch(schedule: Command, cli: Cli, verb: 'pause' | 'resume', description: string): void {
  const command = schedule
    .command(verb)
    .description(description)
    .argument(...NAME);
  callsServer(cli, command, async ({ api, output, args }) => {
    const view = await api.request<ScheduleView>('POST', `${schedulePath(args[0]!)}/${verb}`, {
      signal: cli.interrupted,
    });
    output.document(view, () => scheduleDetails(output, view));
  });
}

function addRunCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('run')
    .description(
      'run the job, workflow or batch of a schedule now, independently of its times; prints the id',
    )
    .argument(...NAME);
  callsServer(cli, command, async ({ api, output, args }) => {
    const path = `${schedulePath(args[0]!)}/run`;
    const run = await api.request<{ id: string }>('POST', path, { signal: cli.interrupted });
    output.document(run, () => `${run.id}\n`);
  });
}

interface BackfillOptions {
  readonly from: string;
  readonly to: string;
  readonly dryRun?: boolean;
}

function addBackfillCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('backfill')
    .description('run the occurrences of a past period that have not run')
    .argument(...NAME)
    .requiredOption('--from <moment>', 'the first moment, such as 2026-12-24T18:00:00Z', moment)
    .requiredOption('--to <moment>', 'the last moment', moment)
    .option('--dry-run', 'only list the occurrences that would run');
  callsServer<BackfillOptions>(cli, command, async ({ api, output, options, args }) => {
    const { from, to, dryRun = false } = options;
    const answer = await api.request<BackfillAnswer>('POST', `${schedulePath(args[0]!)}/backfill`, {
      body: { from, to, dryRun },
      signal: cli.interrupted,
      // The ledger records what has run, so a repeated request starts nothing twice.
      retry: true,
    });
    output.document(answer, () => answer.occurrences.map((at) => `${at}\n`).join(''));
    if (!output.json) output.note(backfilled(answer));
  });
}

function backfilled({ dryRun, matched, started }: BackfillAnswer): string {
  if (dryRun) return `${plural(matched, 'occurrence')} would run.`;
  return `${plural(started, 'occurrence runs', 'occurrences run')} now.`;
}

function addDeleteCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('delete')
    .description('delete a schedule; jobs that are due or have started go on, and its ledger is kept')
    .argument(...NAME);
  callsServer(cli, command, async ({ api, output, args }) => {
    const name = args[0]!;
    await api.request('DELETE', schedulePath(name), { signal: cli.interrupted });
    output.document({ name, deleted: true }, () => `deleted ${name}\n`);
  });
}
