import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { ClusterView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import type { Cell, Output } from './output.js';
import { relativeTime } from './output.js';

const WATCH_EVERY_MS = 1_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

/** `punctual cluster …`: nodes and leaders; pausing and resuming dispatch. */
export function addClusterCommands(program: Command, cli: Cli): void {
  const cluster = program.command('cluster').description('show nodes and leaders; pause and resume dispatch');
  const status = cluster
    .command('status')
    .description('show nodes, leaders and terms')
    .option('--watch', 'repeat every second; one JSON document per line with --json');
  callsServer<{ watch?: boolean }>(cli, status, async ({ api, output, options }) => {
    const signal = AbortSignal.any([cli.interrupted, cli.readerGone]);
    do {
      const view = await api.request<ClusterView>('GET', '/v1/cluster', { signal });
      const redraw = options.watch && cli.stdout.isTTY && !output.json;
      output.document(view, () => (redraw ? CLEAR_SCREEN : '') + renderCluster(output, view, cli.now()));
      if (options.watch) await sleep(WATCH_EVERY_MS, undefined, { signal });
    } while (options.watch);
  });
  addSwitch(cluster, cli, 'pause', 'start no more jobs; running ones go on');
  addSwitch(cluster, cli, 'resume', 'start jobs again');
}

function addSwitch(cluster: Command, cli: Cli, verb: 'pause' | 'resume', description: string): void {
  callsServer(cli, cluster.command(verb).description(description), async ({ api, output }) => {
    const view = await api.request<ClusterView>('POST', `/v1/cluster/${verb}`, { signal: cli.interrupted });
    output.document(view, () => `dispatch is ${view.paused ? 'paused' : 'on'}\n`);
  });
}

/** The cluster as text: dispatch, shards, nodes. */
function renderCluster(output: Output, view: ClusterView, now: number): string {
  const dispatch: Cell = view.paused ? { text: 'paused', style: 'yellow' } : { text: 'on', style: 'green' };
  const shards = view.shards.map((shard): Cell[] => [
    String(shard.id),
    shard.leader ?? { text: 'none', style: 'red' },
    String(shard.epoch),
    relativeTime(shard.expiresAt, now),
  ]);
  const nodes = view.nodes.map((node): Cell[] => [
    node.id,
    node.url,
    node.leads.join(', ') || '-',
    relativeTime(node.lastSeen, now),
    node.version,
  ]);
  return [
    output.details([['dispatch', dispatch]]),
    output.table(
      [
        { header: 'SHARD' },
        { header: 'LEADER' },
        { header: 'EPOCH', align: 'right' },
        { header: 'TERM ENDS' },
      ],
      shards,
    ),
    output.table(
      [
        { header: 'NODE' },
        { header: 'URL', shrink: true },
        { header: 'LEADS' },
        { header: 'SEEN' },
        { header: 'VERSION' },
      ],
      nodes,
    ),
  ].join('\n');
}
