import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as Undici from 'undici';
import { now } from '../moments.js';
import { repository } from '../repository.js';
import { CONNECTIONS } from './punctual-http.js';
import { Receiver } from './receiver.js';
import type { CallBody } from './receiver-process.js';
import type { System } from './system.js';

const require = createRequire(join(repository, 'package.json'));
const { Agent } = require('undici') as typeof Undici;

export const undiciVersion = (require('undici/package.json') as { version: string }).version;

/** What can be had at most: a loop that makes the same calls with the same library, and keeps no record of them. */
export async function openBareCalls(): Promise<{ readonly system: System; readonly receiver: Receiver }> {
  const receiver = await Receiver.start();
  const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  const { origin, pathname } = new URL(receiver.fastUrl);
  const waiting: number[] = [];
  let running = 0;
  let calls = 0;
  let onIdle = (): void => undefined;

  const call = async (n: number) => {
    const body = JSON.stringify({ n, at: now() } satisfies CallBody);
    const headers = { 'content-type': 'application/json' };
    const answer = await agent.request({ origin, path: pathname, method: 'POST', headers, body });
    await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`A call was answered with ${answer.statusCode}.`);
    calls += 1;
  };
  const loop = async () => {
    running += 1;
    for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) await call(n);
    running -= 1;
    if (running === 0) onIdle();
  };
  const submitMany = async (first: number, count: number) => {
    for (let n = first; n < first + count; n += 1) waiting.push(n);
    while (running < CONNECTIONS && running < waiting.length) void loop();
  };
  const system: System = {
    settings: { connections: CONNECTIONS },
    submitMany,
    submitOne: (n) => submitMany(n, 1),
    finish: async () => {
      if (running > 0) await new Promise<void>((resolve) => (onIdle = resolve));
    },
    check: async (submitted) => (calls === submitted ? [] : [`${calls} of ${submitted} calls were answered`]),
    close: async () => {
      await agent.destroy();
      await receiver.close();
    },
  };
  return { system, receiver };
}
