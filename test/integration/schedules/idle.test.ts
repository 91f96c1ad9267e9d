import { expect, it } from 'vitest';
import { isIdle } from '../../../src/cli/idle.js';
import { ApiClient } from '../../../src/client/api-client.js';
import { until } from '../store/test-shard.js';
import { ScheduleTester, SECOND } from './schedule-tester.js';

it('what a schedule will still bring is no work that is left to do; anything else is', async () => {
  const tester = await ScheduleTester.start();
  const api = new ApiClient({ urls: [tester.node.url], apiKey: tester.node.apiKey });
  tester.node.onStop(() => api.close());
  const idle = () => isIdle(api, AbortSignal.timeout(10_000));
  // Far enough ahead of the machine's own time, which is that of the command line.
  await tester.create({ every: '10m' });
  tester.clock.advance(598 * SECOND);
  await until(async () => (await tester.jobs('pending')).length === 1);
  expect(await idle()).toBe(true);
  await tester.node.submit({ task: 'work' });
  expect(await idle()).toBe(false);
});
