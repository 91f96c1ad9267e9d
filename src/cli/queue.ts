import type { Command } from 'commander';
import type { Page, QueueView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { humanDuration } from './moment.js';
import type { Output } from './output.js';
import type { Cell, Column } from './table.js';

const COLUMNS: readonly Column[] = [
  { header: 'QUEUE', shrink: true },
  { header: 'STATE' },
  { header: 'READY', align: 'right' },
  { header: 'UPCOMING', align: 'right' },
  { header: 'RUNNING', align: 'right' },
  { header: 'OLDEST', align: 'right' },
];

const stateOf = (queue: QueueView): Cell =>
  queue.paused ? { text: 'paused', style: 'yellow' } : { text: 'open', style: 'green' };

/** A count of jobs of which more may wait in the table than are counted. */
const count = (queue: QueueView, value: number): string => (queue.more ? `${value}+` : String(value));

const oldest = (queue: QueueView): string =>
  queue.oldestReadyMs === null ? '-' : humanDuration(queue.oldestReadyMs);

function details(output: Output, queue: QueueView): string {
  return output.details([
    ['queue', queue.name],
    ['state', stateOf(queue)],
    ['ready', count(queue, queue.ready)],
    ['upcoming', count(queue, queue.upcoming)],
    ['running', String(queue.running)],
    ['oldest', oldest(queue)],
    ['created', queue.createdAt],
  ]);
}

/** `punctual queue …`: look at queues, stop and start them. */
export function addQueueCommands(program: Command, cli: Cli): void {
  const queue = program.command('queue').description('look at queues, stop and start them');
  callsServer(cli, queue.command('list').description('list the queues'), async ({ api, output }) => {
    const page = await api.request<Page<QueueView>>('GET', '/v1/queues', { signal: cli.interrupted });
    const rows = page.data.map((view): Cell[] => [
      view.name,
      stateOf(view),
      count(view, view.ready),
      count(view, view.upcoming),
      String(view.running),
      oldest(view),
    ]);
    output.document(page, () => output.table(COLUMNS, rows));
  });
  const get = queue.command('get').description('show one queue').argument('<name>', 'the name of the queue');
  callsServer(cli, get, async ({ api, output, args }) => {
    const path = `/v1/queues/${encodeURIComponent(args[0]!)}`;
    const view = await api.request<QueueView>('GET', path, { signal: cli.interrupted });
    output.document(view, () => details(output, view));
  });
  addSwitch(queue, cli, 'pause', 'start no more jobs of a queue; running ones go on');
  addSwitch(queue, cli, 'resume', 'start jobs of a queue again');
}

function addSwitch(queue: Command, cli: Cli, verb: 'pause' | 'resume', description: string): void {
  const command = queue.command(verb).description(description).argument('<name>', 'the name of the queue');
  callsServer(cli, command, async ({ api, output, args }) => {
    const path = `/v1/queues/${encodeURIComponent(args[0]!)}/${verb}`;
    const view = await api.request<QueueView>('POST', path, { signal: cli.interrupted });
    output.document(view, () => details(output, view));
  });
}
