import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Does something with a new, empty Redis that writes its log once a second, which is what its users run. */
export async function withRedis<T>(program: string, work: (url: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'punctual-bench-redis-'));
  const port = await freePort();
  const settings = {
    ...{ port, bind: '127.0.0.1', dir: folder, save: '', daemonize: 'no' },
    ...{ appendonly: 'yes', appendfsync: 'everysec' },
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  running.add(child);
  const ended = once(child, 'close');
  try {
    await Promise.race([
      isReady(child),
      ended.then(() => Promise.reject(new Error(`${program} ended at once.`))),
    ]);
    return await work(`redis://127.0.0.1:${port}`);
  } finally {
    child.kill('SIGTERM');
    await ended;
    running.delete(child);
    await rm(folder, { recursive: true, force: true });
  }
}

async function isReady(child: ChildProcess): Promise<void> {
  for await (const line of createInterface({ input: child.stdout! })) {
    if (line.includes('Ready to accept connections')) break;
  }
  child.stdout!.resume();
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
