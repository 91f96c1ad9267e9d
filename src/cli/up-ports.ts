import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, PunctualError } from '../core/errors.js';

/**
 * The content of a file that exists while `punctual up` runs. If the process it names is gone, that `punctual up` was
 * killed: its nodes stop by themselves, but may occupy their ports for a moment.
 */
interface Marker {
  readonly pid: number;
  readonly ports: readonly number[];
}

const RELEASE_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 100;
const ANSWERS_WITHIN_MS = 1_000;

const pathIn = (dataFolder: string): string => join(dataFolder, 'up.json');

async function readMarker(dataFolder: string): Promise<Marker | null> {
  try {
    const { pid, ports } = JSON.parse(await readFile(pathIn(dataFolder), 'utf8'));
    return typeof pid === 'number' && Array.isArray(ports) ? { pid, ports } : null;
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
  const heldByKilled = marker?.ports.includes(port) && !isAlive;
  const deadline = performance.now() + (heldByKilled ? RELEASE_WITHIN_MS : 0);
  const claimed: number[] = [];
  while (claimed.length < count) {
    const next = port === 0 ? 0 : port + claimed.length;
    const chosen = await claimBefore(deadline, host, next).catch(async (error: unknown) => {
      const url = `http://${reachableHost(host)}:${next}`;
      // Another process may have the same id by now, so the node is asked, too.
      const isOurs = isAlive && isTaken(error) && marker.ports.includes(next) && (await isNode(url));
      throw isOurs ? runsAlready(url, marker.pid, error) : error;
    });
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

function runsAlready(url: string, pid: number, cause: unknown): PunctualError {
  return new PunctualError(
    'PORT_IN_USE',
    `Punctual runs in this folder already, at ${url} (process ${pid}). Use it, or stop it with \`kill ${pid}\`; for a second one choose --data and --port.`,
    { cause },
  );
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
export async function markRunning(dataFolder: string, ports: readonly number[]): Promise<void> {
  await mkdir(dataFolder, { recursive: true, mode: 0o700 });
  await writeFile(pathIn(dataFolder), `${JSON.stringify({ pid: process.pid, ports } satisfies Marker)}\n`);
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
