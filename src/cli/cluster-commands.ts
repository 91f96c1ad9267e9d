import type { Command } from 'commander';
import type { ClusterView } from '../core/wire.js';
import { callsServer, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { addForecastCommand } from './figure-commands.js';
import type { Cell, Output } from './output.js';
import { relativeTime } from './output.js';
import { WIDE, watched } from './watch.js';

/** `punctual cluster …`: nodes and leaders; pausing and resuming dispatch. */
export function addClusterCommands(program: Command, cli: Cli): void {
  const cluster = program.command('cluster').description('show nodes and leaders; pause and resume dispatch');
  const status = cluster
    .command('status')
    .description('show nodes, leaders and terms')
    .option(...WIDE);
  const show = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const view = await api.request<ClusterView>('GET', '/v1/cluster', { signal: cli.interrupted });
    output.document(view, () => renderCluster(output, view, cli.now()));
  };
  callsServer(cli, status, watched(status, show));
  addForecastCommand(cluster, cli);
  addSwitch(cluster, cli, 'pause', 'start no more jobs; running ones go on');
  addSwitch(cluster, cli, 'resume', 'start jobs again');
}

function addSwitch(cluster: Command, cli: Cli, verb: 'pause' | 'resume', description: string): void {
  callsServer(cli, cluster.command(verb).description(description), async ({ api, output }) => {
    const view = await api.request<ClusterView>('POST', `/v1/cluster/${verb}`, { signal: cli.interrupted });
    output.document(view, () => `dispatch is ${view.paused ? 'paused' : 'on'}\n`);
  });
}

/** The shards that a node leads; a bare number would read as how many. */
export function leadsText(shards: readonly number[]): string {
  if (shards.length === 0) return '-';
  return `${shards.length === 1 ? 'shard' : 'shards'} ${shards.join(', ')}`;
}

/** The cluster as text: dispatch, shards, nodes. */
function renderCluster(output: Output, view: ClusterView, now: number): string {
  const dispatch: Cell = view.paused ? { text: 'paused', style: 'yellow' } : { text: 'on', style: 'green' };
  // A tenant is told no more than whether all is well.
  if (view.nodes.length === 0) {
    const state: Cell = view.ok
      ? { text: 'well', style: 'green' }
      : { text: 'without a leader', style: 'red' };
    return output.details([
      ['cluster', state],
      ['dispatch', dispatch],
    ]);
  }
  const shards = view.shards.map((shard): Cell[] => [
    String(shard.id),
    shard.leader ?? { text: 'none', style: 'red' },
    String(shard.epoch),
    relativeTime(shard.expiresAt, now),
  ]);
  const nodes = view.nodes.map((node): Cell[] => [
    node.id,
    node.url,
    node.state === 'dead' ? { text: 'dead', style: 'red' } : { text: node.state, style: 'green' },
    leadsText(node.leads),
    relativeTime(node.lastSeen, now),
    node.version,
  ]);
  return [
    output.details([['dispatch', dispatch]]),
    output.table(
      [
        { header: 'SHARD' },
        { header: 'LEADER', shrink: 'name' },
        { header: 'EPOCH', align: 'right' },
        { header: 'TERM ENDS' },
      ],
      shards,
    ),
    output.table(
      [
        { header: 'NODE', shrink: 'name' },
        { header: 'URL', shrink: 'name' },
        { header: 'STATE' },
        { header: 'LEADS' },
        { header: 'SEEN' },
        { header: 'VERSION', drop: 1 },
      ],
      nodes,
    ),
  ].join('\n');
}
