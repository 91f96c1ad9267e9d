import { readFileSync } from 'node:fs';
import type { Clock } from '../core/clock.js';
import { type ConfigInput, resolveConfig, SETTINGS } from '../core/config.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { guardedLog, type Log, SILENT_LOG } from '../core/log.js';
import { startEmbeddedPostgres } from '../embedded/embedded-postgres.js';
import { Punctual } from '../sdk/punctual.js';
import { DirectTransport } from './direct-transport.js';
import { EmbeddedWorkerGateway } from './embedded-gateway.js';
import { type RunningNode, startNode as startBareNode } from './start-node.js';

export interface StartNodeOptions extends ConfigInput {
  /** Default: random. */
  readonly id?: string;
  /**
   * For the node, and for workers that have none of their own; a pino logger fits, and false silences them. Default: the
   * node says nothing, and workers log to standard error.
   */
  readonly log?: Log | false;
  /** Default: the database's clock. A test gives one that it can move. */
  readonly clock?: Clock;
  /** Whether to pause dispatch first, as for a restored copy; default false. */
  readonly paused?: boolean;
  /** The tenant that `punctual` acts for; default `default`. */
  readonly tenant?: string;
}

const OWN_OPTIONS: OptionNames<Omit<StartNodeOptions, keyof ConfigInput>> = {
  id: true,
  log: true,
  clock: true,
  paused: true,
  tenant: true,
};
const OPTIONS: Readonly<Record<string, true>> = {
  ...OWN_OPTIONS,
  ...Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, true as const])),
};

/** A node inside this program. */
export interface EmbeddedNode {
  readonly id: string;
  readonly url: string;
  /** The database, for submissions inside transactions of your own. */
  readonly databaseUrl: string;
  /** Submits jobs and makes workers without a network between them and the node. */
  readonly punctual: Punctual;
  /** Stops the node, and the embedded Postgres if it has one. Workers should have ended. */
  stop(): Promise<void>;
}

/**
 * Runs a node in this program. Settings come from the options, then from the environment. Without a database
 * URL it brings its own Postgres in the data folder; without a port it listens on any free one.
 */
export async function startNode(options: StartNodeOptions = {}): Promise<EmbeddedNode> {
  // A misspelt databaseUrl would start a database of its own.
  checkOptions('startNode()', options, OPTIONS);
  const { id, log, clock, paused = false, tenant = 'default', ...settings } = options;
  const { config } = resolveConfig({ port: 0, ...settings }, process.env, (path) =>
    readFileSync(path, 'utf8'),
  );
  const own =
    config.databaseUrl === '' ? await startEmbeddedPostgres({ dataFolder: config.data }) : undefined;
  let node: RunningNode;
  try {
    node = await startBareNode({
      config: own ? { ...config, databaseUrl: own.url } : config,
      log: log ? guardedLog(log) : SILENT_LOG,
      paused,
      ...(id !== undefined && { id }),
      ...(clock && { clock }),
    });
  } catch (error) {
    await own?.stop();
    throw error;
  }
  const caller = { tenant, actor: 'embedded', operator: true };
  const transport = new DirectTransport(node, caller);
  const punctual = new Punctual({
    transport,
    tenant,
    openGateway: () => new EmbeddedWorkerGateway(node, caller, transport),
    close: async () => undefined,
    ...(log !== undefined && { log }),
  });
  return {
    id: node.id,
    url: node.url,
    databaseUrl: own?.url ?? config.databaseUrl,
    punctual,
    stop: async () => {
      await node.stop();
      await own?.stop();
    },
  };
}
