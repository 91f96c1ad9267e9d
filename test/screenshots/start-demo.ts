import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Ask } from './shop.js';

const PROGRAM = resolve('bin', 'punctual');

/** A running demo. */
export interface Demo {
  readonly url: string;
  readonly ask: Ask;
  stop(): Promise<void>;
}

/** Starts `punctual up --demo` in a folder, with one more module of tasks. */
export async function startDemo(folder: string, module: string): Promise<Demo> {
  const args = [PROGRAM, 'up', '--demo', '--module', module, '--port', '0', '--json'];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(child, 'close');
  const stop = async () => {
    child.kill('SIGINT');
    await ended;
  };
  try {
    const { url } = await readiness(child.stdout);
    const { apiKey } = JSON.parse(await readFile(join(folder, '.punctual', 'credentials.json'), 'utf8'));
    return { url, stop, ask: (method, path, body) => ask(url, apiKey, method, path, body) };
  } catch (error) {
    await stop();
    throw new Error(`The demo did not start:\n${said}`, { cause: error });
  }
}

/** What it prints when it is ready. */
async function readiness(output: NodeJS.ReadableStream): Promise<{ readonly url: string }> {
  let text = '';
  output.setEncoding('utf8');
  for await (const part of output) {
    text += part;
    const end = text.indexOf('\n');
    if (end >= 0) {
      output.resume();
      return JSON.parse(text.slice(0, end)) as { url: string };
    }
  }
  throw new Error(`The demo ended before it was ready: ${text}`);
}

async function ask(url: string, key: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}
