import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, PunctualError } from '../core/errors.js';
import { makeDataFolder } from '../host/data-folder.js';

/**
 * The content of a file that exists while `punctual up` runs. If the process it names is gone, that `punctual up` was
 * killed: its nodes stop by themselves, but may occupy their ports for a moment.
 */
interface Marker {
  readonly pid: number;
  /** The address that its nodes listen on. */
  readonly host: string;
  readonly ports: readonly number[];
}

const RELEASE_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 100;
const ANSWERS_WITHIN_MS = 1_000;

const pathIn = (dataFolder: string): string => join(dataFolder, 'up.json');

async function readMarker(dataFolder: string): Promise<Marker | null> {
  try {
    const { pid, host, ports } = JSON.parse(await readFile(pathIn(dataFolder), 'utf8'));
    const isWhole = typeof pid === 'number' && typeof host === 'string' && Array.isArray(ports);
    return isWhole ? { pid, host, ports } : null;
  } catch {
    return null;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Finds the ports of the nodes: the given one and those after it, or any free ones for 0. Waits for ports that the
 * nodes of a killed `punctual up` of this folder still occupy.
 */
export async function claimUpPorts(
  dataFolder: string,
  host: string,
  port: number,
  count: number,
): Promise<number[]> {
  const marker = await readMarker(dataFolder);
  const isAlive = marker !== null && isRunning(marker.pid);
  if (isAlive) await refuseSecond(marker);
  const heldByKilled = marker?.ports.includes(port) && !isAlive;
  const deadline = performance.now() + (heldByKilled ? RELEASE_WITHIN_MS : 0);
  const claimed: number[] = [];
  while (claimed.length < count) {
    const next = port === 0 ? 0 : port + claimed.length;
    const chosen = await claimBefore(deadline, host, next);
    if (!claimed.includes(chosen)) claimed.push(chosen);
  }
  return claimed;
}

function isTaken(error: unknown): boolean {
  return error instanceof PunctualError && error.code === 'PORT_IN_USE';
}

async function isNode(url: string): Promise<boolean> {
  return fetch(new URL('/livez', url), { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Throws when the `punctual up` of the marker still runs, on whichever port. */
async function refuseSecond({ pid, host, ports }: Marker): Promise<void> {
  for (const port of ports) {
    const url = `http://${reachableHost(host)}:${port}`;
    // Another process may have the same id by now, so the node is asked, too.
    if (!(await isNode(url))) continue;
    throw new PunctualError(
      'ALREADY_RUNNING',
      `Punctual runs in this folder already, at ${url} (process ${pid}). Use it, or stop it with \`kill ${pid}\`; for a second one choose --data and --port.`,
    );
  }
}

async function claimBefore(deadline: number, host: string, port: number): Promise<number> {
  for (;;) {
    try {
      return await claimPort(host, port);
    } catch (error) {
      if (!isTaken(error) || performance.now() >= deadline) throw error;
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Writes the marker file. */
export async function markRunning(dataFolder: string, host: string, ports: readonly number[]): Promise<void> {
  await makeDataFolder(dataFolder);
  const marker: Marker = { pid: process.pid, host, ports };
  await writeFile(pathIn(dataFolder), `${JSON.stringify(marker)}\n`);
}

/** Removes the marker file after everything has stopped. */
export async function unmarkRunning(dataFolder: string): Promise<void> {
  await rm(pathIn(dataFolder), { force: true });
}

/**
 * Checks that a port is free, before anything is started; port 0 stands for any free one. Returns the port.
 */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE';
      const detail = taken
        ? `Port ${port} on ${host} is taken by another program. Choose another one with --port.`
        : `Cannot listen on ${host}:${port}: ${messageOf(error)}. Choose another port with --port.`;
      reject(new PunctualError(taken ? 'PORT_IN_USE' : 'CONFIGURATION', detail, { cause: error }));
    });
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      const chosen = typeof address === 'object' && address !== null ? address.port : port;
      server.close(() => resolve(chosen));
    });
  });
}

/** The host to connect to; a node that listens on all addresses is reached through the loopback. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
