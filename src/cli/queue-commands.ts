import type { Command } from 'commander';
import { humanDuration } from '../core/duration.js';
import type { QueueView } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { addQueueFigureCommands } from './figure-commands.js';
import {
  addRateOptions,
  count,
  NONE,
  orNone,
  type RateOptions,
  rateOf,
  rateText,
  requireChange,
  weight,
} from './option-values.js';
import type { Cell, Column, Output } from './output.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'QUEUE', shrink: 'name' },
  { header: 'STATE' },
  { header: 'READY', align: 'right' },
  { header: 'UPCOMING', align: 'right', drop: 3 },
  { header: 'RUNNING', align: 'right' },
  { header: 'LIMIT', align: 'right', drop: 4 },
  { header: 'RATE', align: 'right', drop: 2 },
  { header: 'WEIGHT', align: 'right', drop: 1 },
  { header: 'OLDEST', align: 'right' },
];

const stateOf = (queue: QueueView): Cell =>
  queue.paused ? { text: 'paused', style: 'yellow' } : { text: 'open', style: 'green' };

/** A count of jobs, with a plus sign if there may be more. */
const counted = (queue: QueueView, value: number): string => (queue.more ? `${value}+` : String(value));

const oldest = (queue: QueueView): string =>
  queue.oldestReadyMs === null ? '-' : humanDuration(queue.oldestReadyMs);

const limitText = (limit: number | null): string => (limit === null ? '-' : String(limit));

function details(output: Output, queue: QueueView): string {
  return output.details([
    ['queue', queue.name],
    ['state', stateOf(queue)],
    ['ready', counted(queue, queue.ready)],
    ['upcoming', counted(queue, queue.upcoming)],
    ['running', String(queue.running)],
    ['limit', limitText(queue.concurrency)],
    ['per key', String(queue.keyConcurrency)],
    ['rate', rateText(queue.rate)],
    ['burst', queue.rate && String(queue.rate.burst)],
    ['weight', String(queue.weight)],
    ['oldest', oldest(queue)],
    ['created', queue.createdAt],
  ]);
}

/** `punctual queue …`: showing, limiting, pausing and resuming queues. */
export function addQueueCommands(program: Command, cli: Cli): void {
  const queue = program.command('queue').description('show, limit, pause and resume queues');
  addQueueFigureCommands(queue, cli);
  const list = queue
    .command('list')
    .description('list the queues')
    .option(...WIDE);
  const showList = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const page = await readPages<QueueView>(api, '/v1/queues', {
      signal: cli.interrupted,
    });
    const rows = page.data.map((view): Cell[] => [
      view.name,
      stateOf(view),
      counted(view, view.ready),
      counted(view, view.upcoming),
      String(view.running),
      limitText(view.concurrency),
      rateText(view.rate),
      String(view.weight),
      oldest(view),
    ]);
    output.document(page, () => output.table(COLUMNS, rows));
  };
  callsServer(cli, list, watched(list, showList, { events: () => ({ types: ['job.*', 'queue.*'] }) }));
  const get = queue.command('get').description('show one queue').argument('<name>', 'the name of the queue');
  const showOne = async ({ api, output, args }: ServerCall<object>): Promise<void> => {
    const path = `/v1/queues/${encodeURIComponent(args[0]!)}`;
    const view = await api.request<QueueView>('GET', path, { signal: cli.interrupted });
    output.document(view, () => details(output, view));
  };
  callsServer(cli, get, watched(get, showOne, { events: ({ args }) => ({ queue: args[0]! }) }));
  addLimitCommand(queue, cli);
  addSwitch(queue, cli, 'pause', 'start no more jobs of a queue; running ones go on');
  addSwitch(queue, cli, 'resume', 'start jobs of a queue again');
}

interface LimitOptions extends RateOptions {
  readonly concurrency?: number | typeof NONE;
  readonly perKey?: number;
  readonly weight?: number;
}

function addLimitCommand(queue: Command, cli: Cli): void {
  const command = queue
    .command('limit')
    .description('set the share and the limits of a queue; limits that are not named stay as they are')
    .argument('<name>', 'the name of the queue, which is created if it does not exist')
    .option('--concurrency <n>', 'jobs that run at a time; none for no limit', orNone(count))
    .option('--per-key <n>', 'jobs of one concurrency key that run at a time', count)
    .option('--weight <n>', "its share relative to the tenant's other queues", weight);
  addRateOptions(command);
  callsServer<LimitOptions>(cli, command, async ({ api, output, options, args }) => {
    const { concurrency, perKey, weight } = options;
    const body = {
      ...(concurrency !== undefined && { concurrency: concurrency === NONE ? null : concurrency }),
      ...(perKey !== undefined && { keyConcurrency: perKey }),
      ...(weight !== undefined && { weight }),
      ...rateOf(options),
    };
    requireChange(body, '--concurrency, --per-key, --rate or --weight');
    const path = `/v1/queues/${encodeURIComponent(args[0]!)}`;
    const view = await api.request<QueueView>('PATCH', path, { body, signal: cli.interrupted, retry: true });
    output.document(view, () => details(output, view));
  });
}

function addSwitch(queue: Command, cli: Cli, verb: 'pause' | 'resume', description: string): void {
  const command = queue.command(verb).description(description).argument('<name>', 'the name of the queue');
  callsServer(cli, command, async ({ api, output, args }) => {
    const path = `/v1/queues/${encodeURIComponent(args[0]!)}/${verb}`;
    const view = await api.request<QueueView>('POST', path, { signal: cli.interrupted });
    output.document(view, () => details(output, view));
  });
}
