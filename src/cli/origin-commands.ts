import type { Command } from 'commander';
import { humanDuration } from '../core/duration.js';
import type { OriginView } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import {
  addRateOptions,
  count,
  NONE,
  orNone,
  type RateOptions,
  rateOf,
  rateText,
  requireChange,
} from './option-values.js';
import type { Cell, Column, Output } from './output.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'ORIGIN', shrink: 'name' },
  { header: 'STATE' },
  { header: 'FAILURES', align: 'right', drop: 3 },
  { header: 'RUNNING', align: 'right' },
  { header: 'WAITING', align: 'right' },
  { header: 'P50', align: 'right', drop: 5 },
  { header: 'P99', align: 'right', drop: 4 },
  { header: 'LIMIT', align: 'right', drop: 2 },
  { header: 'RATE', align: 'right', drop: 1 },
  { header: 'UNTIL' },
];

const stateOf = ({ state }: OriginView): Cell => ({
  text: state,
  style: state === 'closed' ? 'green' : state === 'open' ? 'red' : 'yellow',
});

const limitText = (limit: number | null): string => (limit === null ? '-' : String(limit));

const msText = (ms: number | undefined): string => (ms === undefined ? '-' : humanDuration(ms));

function latencyText({ latency }: OriginView): string | null {
  if (latency === null) return null;
  const { calls, p50Ms, p99Ms } = latency;
  return `p50 ${msText(p50Ms)}, p99 ${msText(p99Ms)} of the last ${calls === 1 ? 'call' : `${calls} calls`}`;
}

function details(output: Output, view: OriginView): string {
  return output.details([
    ['origin', view.origin],
    ['state', stateOf(view)],
    ['until', view.until],
    ['failures', String(view.consecutiveFailures)],
    ['running', String(view.running)],
    ['waiting', String(view.waiting)],
    ['latency', latencyText(view)],
    ['limit', limitText(view.concurrency)],
    ['rate', rateText(view.rate)],
  ]);
}

/** `punctual origin …`: what http targets call, its limits, and closing a circuit by hand. */
export function addOriginCommands(program: Command, cli: Cli): void {
  const origin = program
    .command('origin')
    .description('show, limit and reset the origins that http targets call');
  const list = origin
    .command('list')
    .description('list the origins that are called or waited for, and those with limits of their own')
    .option(...WIDE);
  const showList = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const page = await readPages<OriginView>(api, '/v1/origins', { signal: cli.interrupted });
    const rows = page.data.map((view): Cell[] => [
      view.origin,
      stateOf(view),
      String(view.consecutiveFailures),
      String(view.running),
      String(view.waiting),
      msText(view.latency?.p50Ms),
      msText(view.latency?.p99Ms),
      limitText(view.concurrency),
      rateText(view.rate),
      view.until ?? '-',
    ]);
    output.document(page, () => output.table(COLUMNS, rows));
  };
  callsServer(cli, list, watched(list, showList, { events: () => ({ types: ['job.*', 'origin.*'] }) }));
  addLimitCommand(origin, cli);
  const reset = origin
    .command('reset')
    .description('close the circuit of an origin and end its pause')
    .argument('<origin>', 'the origin, such as https://example.com');
  callsServer(cli, reset, async ({ api, output, args }) => {
    const body = { origin: args[0]! };
    const view = await api.request<OriginView>('POST', '/v1/origins/reset', {
      body,
      signal: cli.interrupted,
    });
    output.document(view, () => details(output, view));
  });
}

interface LimitOptions extends RateOptions {
  readonly concurrency?: number | typeof NONE;
  readonly usual?: boolean;
}

function addLimitCommand(origin: Command, cli: Cli): void {
  const command = origin
    .command('limit')
    .description('set the limits of an origin; those that are not named are as usual')
    .argument('<origin>', 'the origin, such as https://example.com')
    .option('--concurrency <n>', 'calls that run at a time; none for no limit', orNone(count))
    .option('--usual', 'take its limits away');
  addRateOptions(command);
  callsServer<LimitOptions>(cli, command, async ({ api, output, options, args }) => {
    const { concurrency, usual } = options;
    const [name] = args as [string];
    if (usual) {
      const path = `/v1/origins?origin=${encodeURIComponent(name)}`;
      await api.request('DELETE', path, { signal: cli.interrupted });
      output.document({ origin: name }, () => `${name} has the usual limits\n`);
      return;
    }
    const limits = {
      ...(concurrency !== undefined && { concurrency: concurrency === NONE ? null : concurrency }),
      ...rateOf(options),
    };
    requireChange(limits, '--concurrency, --rate or --usual');
    const body = { origin: name, ...limits };
    const view = await api.request<OriginView>('PUT', '/v1/origins', {
      ...{ body, signal: cli.interrupted, retry: true },
    });
    output.document(view, () => details(output, view));
  });
}
