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

/** Headers as long as those of a call of ours, beside the type of the body. */
const LIKE_OURS: Readonly<Record<string, string>> = {
  'user-agent': 'punctual/0.1.0',
  accept: '*/*',
  'accept-encoding': 'identity',
  'punctual-url': 'http://127.0.0.1:12345',
  'punctual-job-id': '01980000-0000-7000-8000-000000000000',
  'punctual-attempt': '1',
  'punctual-fence': '1',
  'punctual-token': 't'.repeat(266),
  'punctual-due-at': '2026-01-01T00:00:00.000Z',
  traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`,
  'webhook-id': '01980000-0000-7000-8000-000000000000-1',
  'webhook-timestamp': '1767225600',
  'webhook-signature': `v1,${'s'.repeat(44)}`,
};

/**
 * What can be had at most: a loop that makes the same calls with the same library, and keeps no record of them. With `likeOurs` it sends
 * as many headers as our calls have, which the receiver has to read.
 */
export async function openBareCalls({
  likeOurs,
}: {
  readonly likeOurs: boolean;
}): Promise<{ readonly system: System; readonly receiver: Receiver }> {
  const receiver = await Receiver.start();
  const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  const { origin, pathname } = new URL(receiver.fastUrl);
  const headers = { 'content-type': 'application/json', ...(likeOurs && LIKE_OURS) };
  const waiting: number[] = [];
  let running = 0;
  let calls = 0;
  let onIdle = (): void => undefined;

  const call = async (n: number) => {
    const body = JSON.stringify({ n, at: now() } satisfies CallBody);
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
    settings: { connections: CONNECTIONS, headers: Object.keys(headers).length },
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
