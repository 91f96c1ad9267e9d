import type { Command } from 'commander';
import { queryText } from '../client/pages.js';
import { humanDuration } from '../core/duration.js';
import type { ErrorGroupsView, ForecastView, QueueHistoryView, WaitingView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { wholeNumber } from './option-values.js';
import { relativeTime } from './output.js';

/** Commands that show figures over time: what failed, what waits, what queues did, what becomes due. */

interface ErrorsOptions {
  readonly since?: string;
  readonly task?: string;
  readonly queue?: string;
  readonly limit?: number;
}

interface MinutesOptions {
  readonly minutes?: number;
}

const minutes = wholeNumber(1, 1_440);
const timeOfDay = (moment: string) => `${moment.slice(11, 16)}Z`;

/** `punctual job errors`: failed jobs by how they have failed. */
export function addErrorsCommand(job: Command, cli: Cli): void {
  const command = job
    .command('errors')
    .description('show failed jobs, grouped by task and by what their errors have in common')
    .option('--since <duration>', 'how far back, such as 2h (default: 24h)')
    .option('--task <name>', 'only jobs of this task')
    .option('--queue <name>', 'only jobs of this queue')
    .option('--limit <n>', 'the most groups (default: 100)', wholeNumber(1, 1_000));
  callsServer<ErrorsOptions>(
    cli,
    command,
    async ({ api, output, options: { since, task, queue, limit } }) => {
      const query = queryText({ since, task, queue, limit: limit?.toString() });
      const view = await api.request<ErrorGroupsView>('GET', `/v1/errors${query}`, {
        signal: cli.interrupted,
      });
      const rows = view.data.map((group) => [
        group.fingerprint,
        String(group.count),
        group.task ?? '-',
        relativeTime(group.lastSeen, cli.now()),
        group.code === null ? group.message : `${group.code}: ${group.message}`,
      ]);
      output.document(view, () =>
        rows.length === 0
          ? 'no failed jobs\n'
          : output.table(
              [
                { header: 'FINGERPRINT' },
                { header: 'JOBS', align: 'right' },
                { header: 'TASK', shrink: 'name' },
                { header: 'LAST' },
                { header: 'ERROR', shrink: true },
              ],
              rows,
            ),
      );
      if (!view.complete)
        output.note(`only the newest failed jobs were looked at, of which ${view.examined} fit`);
    },
  );
}

/** `punctual queue history` and `punctual queue waiting`. */
export function addQueueFigureCommands(queue: Command, cli: Cli): void {
  const history = queue
    .command('history')
    .description('show what a queue did, by the minute')
    .argument('<name>', 'the name of the queue')
    .option('--minutes <n>', 'how many minutes back (default: 60)', minutes);
  callsServer<MinutesOptions>(cli, history, async ({ api, output, args, options }) => {
    const path = `/v1/queues/${encodeURIComponent(args[0]!)}/history`;
    const query = queryText({ minutes: options.minutes?.toString() });
    const view = await api.request<QueueHistoryView>('GET', path + query, { signal: cli.interrupted });
    output.document(view, () =>
      output.table(
        [
          { header: 'MINUTE' },
          { header: 'ENDED', align: 'right' },
          { header: 'READY', align: 'right' },
          { header: 'OLDEST', align: 'right' },
        ],
        view.data.map((each) => [
          timeOfDay(each.minute),
          String(each.ended),
          String(each.ready),
          each.ready === 0 ? '-' : humanDuration(each.oldestReadyMs),
        ]),
      ),
    );
  });
  const waiting = queue
    .command('waiting')
    .description('show what live jobs wait for, by reason, and how many jobs are not live');
  callsServer(cli, waiting, async ({ api, output }) => {
    const view = await api.request<WaitingView>('GET', '/v1/waiting?include=later', {
      signal: cli.interrupted,
    });
    const rows = view.data.map((each) => [
      each.reason,
      view.complete ? String(each.jobs) : `${each.jobs}+`,
      each.oldestReadyMs === 0 ? '-' : humanDuration(each.oldestReadyMs),
      each.queues.map((some) => `${some.queue} (${some.jobs})`).join(', '),
    ]);
    output.document(
      view,
      () =>
        laterLine(view) +
        (rows.length === 0
          ? 'no live job waits\n'
          : output.table(
              [
                { header: 'REASON' },
                { header: 'JOBS', align: 'right' },
                { header: 'OLDEST', align: 'right' },
                { header: 'QUEUES', shrink: true },
              ],
              rows,
            )),
    );
  });
}

/** How many jobs are not live; empty where there is none. */
function laterLine({ later }: WaitingView): string {
  if (!later) return '';
  const { held, blocked, notDue, complete } = later;
  const parts = [
    [held, 'on hold'],
    [blocked, 'blocked'],
    [notDue, 'not due for long'],
  ].flatMap(([jobs, words]) => (jobs === 0 ? [] : [`${jobs}${complete ? '' : '+'} ${words}`]));
  return parts.length === 0 ? '' : `not live: ${parts.join(', ')}\n`;
}

/** `punctual cluster forecast`: what becomes due, and how many slots that wants. */
export function addForecastCommand(cluster: Command, cli: Cli): void {
  const command = cluster
    .command('forecast')
    .description('show how much becomes due in the minutes ahead, and how many slots that wants')
    .option('--minutes <n>', 'how many minutes ahead (default: 60)', minutes);
  callsServer<MinutesOptions>(cli, command, async ({ api, output, options }) => {
    const query = queryText({ minutes: options.minutes?.toString() });
    const view = await api.request<ForecastView>('GET', `/v1/forecast${query}`, { signal: cli.interrupted });
    const busy = view.data.filter(({ jobs, occurrences }) => jobs + occurrences > 0);
    output.document(view, () =>
      busy.length === 0
        ? 'nothing becomes due\n'
        : output.table(
            [
              { header: 'MINUTE' },
              { header: 'JOBS', align: 'right' },
              { header: 'SCHEDULED', align: 'right' },
              { header: 'SLOTS', align: 'right' },
              { header: 'HERD' },
            ],
            busy.map((each) => [
              timeOfDay(each.at),
              String(each.jobs),
              String(each.occurrences),
              each.slotsWanted === null ? '-' : String(each.slotsWanted),
              each.herd ? { text: 'herd', style: 'yellow' } : '',
            ]),
          ),
    );
    if (!view.complete) output.note('there is more than could be counted');
  });
}
