import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { benchFolder } from './repository.js';

/** The peers, which are installed below bench/ on first use. */
export const PEERS = ['graphile-worker', 'pg-boss', 'bullmq'] as const;
export type Peer = (typeof PEERS)[number];

const requireFromBench = createRequire(join(benchFolder, 'package.json'));

/** A package of the bench. Its types are written down where it is used, so that nobody must install it to compile. */
export function loadPeer<Module>(name: string): Module {
  return requireFromBench(name) as Module;
}

export function peerVersion(name: Peer): string {
  const path = join(benchFolder, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

/** Where `redis-server` is, or null: then BullMQ is left out. */
export function findRedis(path = process.env.PATH ?? ''): string | null {
  return (
    path
      .split(delimiter)
      .map((folder) => join(folder, 'redis-server'))
      .find((file) => existsSync(file)) ?? null
  );
}
