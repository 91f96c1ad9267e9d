import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { SILENT_LOG } from '../../../src/core/log.js';
import { startNode } from '../../../src/node/embed.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { createTestDatabase } from '../../database.js';
import { TestNode } from '../../node-for-tests.js';
import { countPlaces } from '../../postgres-client.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
  return () => node.stop();
});

/** A way to the node that passes requests on and loses the first `lost` answers to submissions. */
async function losing(lost: number): Promise<{ url: string; readonly submissions: number }> {
  let submissions = 0;
  const server = createServer((request, response) => {
    const isSubmission = request.method === 'POST';
    if (isSubmission) submissions += 1;
    const isLost = isSubmission && submissions <= lost;
    const { method, headers } = request;
    const onward = httpRequest(node.url + request.url, { method, headers }, (answer) => {
      if (isLost) {
        answer.resume().on('end', () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get submissions() {
      return submissions;
    },
  };
}

it('the SDK repeats a submission with an idempotency key whose answer was lost, and it is stored once', async () => {
  const way = await losing(2);
  const punctual = node.connect('sdk', { url: way.url });
  const job = await punctual.submit('work', { n: 1 }, { idempotencyKey: 'one' });
  expect(way.submissions).toBe(3);
  expect(await punctual.get(job.id)).toMatchObject({ payload: { n: 1 } });
  const again = await punctual.submit('work', { n: 1 }, { idempotencyKey: 'one' });
  expect(again.id).toBe(job.id);
  await expect(punctual.submit('work', { n: 2 }, { idempotencyKey: 'one' })).rejects.toMatchObject({
    code: 'IDEMPOTENCY_KEY_REUSED',
  });
});

it('so it does with a bulk; without a key the call fails, because nobody knows what was stored', async () => {
  const first = await losing(1);
  const punctual = node.connect('bulk', { url: first.url });
  const jobs = await punctual.submitMany('work', [1, 2, 3], {}, { idempotencyKey: 'many' });
  expect(first.submissions).toBe(2);
  const listed: string[] = [];
  for await (const { id } of punctual.list()) listed.push(id);
  expect(listed.sort()).toEqual(jobs.map(({ id }) => id).sort());

  const second = await losing(1);
  const careless = node.connect('bulk', { url: second.url });
  await expect(careless.submitMany('work', [1])).rejects.toMatchObject({ code: 'UNREACHABLE' });
  expect(second.submissions).toBe(1);
});

it('a program with a node inside can use an idempotency key too', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const embedded = await startNode({ databaseUrl: database.url, port: 0, log: SILENT_LOG });
  onTestFinished(() => embedded.stop());
  const { punctual } = embedded;
  const submit = () => punctual.submit('work', { n: 1 }, { idempotencyKey: 'inside' });
  const [first, second] = [await submit(), await submit()];
  expect(second.id).toBe(first.id);
  expect(await countPlaces(database.url)).toMatchObject({ live: 1 });
});

it('job submit --idempotency-key prints the same ids again, of one job or of a file', async () => {
  const submit = async (input: string, ...args: string[]) => {
    const { cli, stdout, stderr } = cliUnderTest({
      environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
      stdin: Readable.from([input]),
    });
    const code = await runCli(['job', 'submit', ...args, '--tenant', 'shell'], cli);
    return { code, ids: stdout(), stderr: stderr() };
  };
  const one = () => submit('', '--task', 'work', '--idempotency-key', 'one');
  const first = await one();
  expect(first).toMatchObject({ code: 0, ids: expect.stringMatching(/^\S{36}\n$/) });
  expect(await one()).toEqual(first);
  const file = () => submit('{"task":"a"}\n{"task":"b"}\n', '--file', '-', '--idempotency-key', 'file');
  const many = await file();
  expect(many).toMatchObject({ code: 0, ids: expect.stringMatching(/^(\S{36}\n){2}$/) });
  expect(await file()).toEqual(many);
  const reused = await submit('', '--task', 'other', '--idempotency-key', 'one');
  expect(reused).toMatchObject({ code: 2, stderr: expect.stringContaining('another request') });
});
