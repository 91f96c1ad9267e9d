import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { totalmem } from 'node:os';

/** The settings of the embedded server; all others have Postgres's defaults. */

const MEGABYTE = 1024 * 1024;

/** An eighth of the available memory, between 32 and 256 megabytes. */
export function sharedBuffersMb(memoryBytes: number): number {
  const share = Math.floor(memoryBytes / 8 / MEGABYTE);
  return Math.min(256, Math.max(32, share));
}

/** The memory that this process may use: that of the machine, or of its container if that is less. */
function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/**
 * The arguments of the server. Settings are given on the command line, so that no configuration file in the data
 * folder can open the server to the network or disable its durability.
 */
export function serverArguments(
  pgdata: string,
  port: number,
  overrides: Readonly<Record<string, string>>,
): string[] {
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    // Without a Unix socket there is no folder in which other users could reach it or take its name.
    unix_socket_directories: '',
    password_encryption: 'scram-sha-256',
    fsync: 'on',
    synchronous_commit: 'on',
    max_connections: '200',
    shared_buffers: `${sharedBuffersMb(availableMemory())}MB`,
    max_wal_size: '4GB',
    autovacuum_naptime: '10s',
    // Checkpoints are routine; the log is for errors.
    log_checkpoints: 'off',
    log_timezone: 'UTC',
    timezone: 'UTC',
    ...overrides,
  };
  return ['-D', pgdata, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/**
 * These ports are below the range that systems use for outgoing connections, so that the stored port is rarely in use
 * at the next start.
 */
const LOWEST = 20_000;
const HIGHEST = 29_999;
const TRIES = 50;

/** The preferred port if it is free on 127.0.0.1, else another free one. */
export async function freePort(preferred: number | null): Promise<number> {
  if (preferred !== null && (await bind(preferred)) !== null) return preferred;
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = await bind(randomInt(LOWEST, HIGHEST + 1));
    if (port !== null) return port;
  }
  return (await bind(0)) ?? HIGHEST;
}

function bind(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });
}
