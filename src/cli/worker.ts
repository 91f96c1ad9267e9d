import type { Command } from 'commander';
import { formatRate } from '../core/rate.js';
import type { WorkerState, WorkerView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { relativeTime } from './moment.js';
import { readPages } from './pages.js';
import type { Style } from './paint.js';
import type { Cell, Column } from './table.js';
import { addRunCommand } from './worker-run.js';

const STYLES: Readonly<Record<WorkerState, Style>> = { alive: 'green', draining: 'yellow', dead: 'red' };

const COLUMNS: readonly Column[] = [
  { header: 'ID' },
  { header: 'NAME', shrink: true },
  { header: 'STATE' },
  { header: 'RUNNING', align: 'right' },
  { header: 'SLOTS', align: 'right' },
  { header: 'RATE', align: 'right' },
  { header: 'TENANTS' },
  { header: 'QUEUES', shrink: true },
  { header: 'TASKS', shrink: true },
  { header: 'SEEN' },
];

/** `punctual worker …`: run workers, look at them, send them home. */
export function addWorkerCommands(program: Command, cli: Cli): void {
  const worker = program.command('worker').description('run workers, look at them, send them home');
  addRunCommand(worker, cli);
  callsServer(cli, worker.command('list').description('list the workers'), async ({ api, output }) => {
    const page = await readPages<WorkerView>(api, '/v1/workers', {
      signal: cli.interrupted,
    });
    const rows = page.data.map((view): Cell[] => [
      view.id,
      view.name,
      { text: view.state, style: STYLES[view.state] },
      String(view.running),
      String(view.slots),
      view.rate ? formatRate(view.rate) : '-',
      view.shared ? 'all' : 'own',
      view.queues.join(','),
      view.tasks.join(',') || '-',
      relativeTime(view.lastSeen, cli.now()),
    ]);
    output.document(page, () => output.table(COLUMNS, rows));
  });
  const drain = worker
    .command('drain')
    .description('have a worker take no more jobs, finish and leave')
    .argument('<id>', 'the id of the worker');
  callsServer(cli, drain, async ({ api, output, args }) => {
    const path = `/v1/workers/${encodeURIComponent(args[0]!)}/drain`;
    const view = await api.request<WorkerView>('POST', path, { signal: cli.interrupted });
    output.document(view, () => `${view.id}  ${view.state}, ${view.running} running\n`);
  });
}
