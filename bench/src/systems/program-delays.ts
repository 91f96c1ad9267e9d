import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { operatorKey } from '../access.js';
import { loadSdk, loadServer, PROGRAM } from '../product.js';

/** Jobs that are submitted in a second, one by one. */
export const PER_SECOND = 20;

interface DelayOptions {
  readonly url: string;
  readonly folder: string;
  readonly program: string;
  readonly seconds: number;
}

/**
 * How long it takes from the submission of a job until its program has begun, in milliseconds: the program tells when that was. A node
 * and the submitter are one process, the worker is another.
 */
export async function programDelays({ url, folder, program, seconds }: DelayOptions): Promise<number[]> {
  const { startNode } = await loadServer();
  const { exec } = await loadSdk();
  const node = await startNode({ databaseUrl: url, data: folder, allowCommands: true });
  const worker = await startWorker(node.url, await operatorKey(url), folder);
  const delays: Promise<number>[] = [];
  for (let n = 0; n < PER_SECOND * seconds; n++) {
    delays.push(delayOf());
    await sleep(1_000 / PER_SECOND);
  }
  const all = await Promise.all(delays);
  await worker.stop();
  await node.stop();
  return all;

  async function delayOf(): Promise<number> {
    const at = performance.timeOrigin + performance.now();
    const job = await node.punctual.submit(exec({ command: program }), null);
    return ((await job.result()) as number) - at;
  }
}

async function startWorker(url: string, apiKey: string, folder: string) {
  const args = [
    'worker',
    'run',
    '--targets',
    'exec',
    '--isolation',
    'none',
    '--exec-folder',
    `${folder}/exec`,
  ];
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: {
      ...process.env,
      ...{
        PUNCTUAL_SUPERVISED: '1',
        PUNCTUAL_URL: url,
        PUNCTUAL_API_KEY: apiKey,
        PUNCTUAL_ALLOW_COMMANDS: 'true',
      },
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  process.once('exit', () => child.kill('SIGKILL'));
  await once(child, 'message');
  return {
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
