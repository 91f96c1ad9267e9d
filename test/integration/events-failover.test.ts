import { rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { connect } from '../../src/sdk/connect.js';
import { createOperatorKey } from '../../src/store/operator-key.js';
import { createTestDatabase } from '../database.js';
import { EventListener } from '../event-listener.js';
import { PunctualProcess } from '../punctual-process.js';
import { temporaryFolder } from '../temporary-folder.js';

it('a leader that is killed costs those who listen a reset, and no event before or after it', async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  }, 30_000);
  const { key: apiKey } = await createOperatorKey(database.url, 'tester');
  const startServer = async () => {
    const server = new PunctualProcess(['server', '--port', '0'], {
      folder,
      environment: { PUNCTUAL_DATABASE_URL: database.url },
    });
    onTestFinished(async () => void (await server.kill('SIGKILL')), 30_000);
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    return { server, url: url! };
  };
  const leader = await startServer();
  const follower = await startServer();

  const query = '?type=job.submitted';
  const staying = await EventListener.open({ url: follower.url, apiKey, query });
  onTestFinished(() => staying.close());
  await staying.event('hello');
  const program = connect({ url: [leader.url, follower.url], apiKey });
  onTestFinished(() => program.close());
  const end = new AbortController();
  const heard: string[] = [];
  const listening = (async () => {
    for await (const event of program.events({ types: ['job.submitted'], signal: end.signal })) {
      heard.push(event.type === 'job.submitted' ? event.job! : event.type);
    }
  })();
  listening.catch(() => undefined);
  await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['hello']);

  const submit = async (count: number) => {
    const ids: string[] = [];
    // With keys, so that a submission whose answer is lost with its node is repeated.
    for (let i = 0; i < count; i++) {
      const key = `job-${Math.random()}`;
      ids.push((await program.submit('nobody', { i }, { key })).id);
    }
    return ids;
  };
  const before = await submit(20);
  await staying.event('job.submitted', before.at(-1));
  await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['hello', ...before]);

  await leader.server.kill('SIGKILL');
  const during = await submit(20);
  await staying.event('reset');
  await expect.poll(() => heard, { timeout: 20_000 }).toContain('reset');
  const after = await submit(20);
  await staying.event('job.submitted', after.at(-1));
  await expect.poll(() => heard, { timeout: 10_000 }).toContain(after.at(-1));

  const ofStaying = staying.heard.map(({ event, data }) => (event === 'job.submitted' ? data.job! : event));
  for (const told of [heard, ofStaying]) {
    expect(new Set(told).size).toBe(told.length);
    expect(told.slice(0, 21)).toEqual(['hello', ...before]);
    expect(told.slice(-20)).toEqual(after);
    const between = told.slice(21, -20);
    expect(between).toContain('reset');
    expect(during).toEqual(expect.arrayContaining(between.filter((each) => each !== 'reset')));
  }
  end.abort();
}, 120_000);
