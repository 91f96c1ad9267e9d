import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Agent, request } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Happening } from '../../../test/happening.js';
import { type KnownLeader, LeaderElsewhere } from '../../cluster/leader-elsewhere.js';
import { PeerTrust } from '../../cluster/peer-trust.js';
import { News } from '../../core/news.js';
import { isForwarded, signForwarded } from '../../core/tokens.js';
import type { FollowedShard } from '../shard.js';
import { OPERATOR_KEY, OTHER_ID, recordingRoutes, serverOptions } from './routes.fixture.js';
import { createHttpServer } from './server.js';

/** A program that listens on loopback until the test ends. */
async function listening(answer: RequestListener): Promise<{ url: string; port: number }> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

/** A node that does not lead: what only a leader can do is thrown back at it. */
function follower(leader: () => KnownLeader | null, leaderNews?: News) {
  const elsewhere = () => Promise.reject(new LeaderElsewhere(0, 'somewhere'));
  return nodeWith(leader, elsewhere, leaderNews);
}

const SECRET = Buffer.alloc(32, 7);

interface NodeOptions {
  readonly others?: readonly FollowedShard[];
  /** What the node vouches for a client with. */
  readonly credential?: string | null;
}

/** A node on loopback until the test ends. */
async function nodeWith(
  leader: () => KnownLeader | null,
  answer: (signal: AbortSignal) => Promise<never>,
  leaderNews = new News(),
  { others = [], credential = null }: NodeOptions = {},
) {
  const atOnce = () => answer(new AbortController().signal);
  const recording = recordingRoutes({
    ...{ listQueues: atOnce, getQueue: atOnce, pauseQueue: atOnce, reportResults: atOnce },
    claimJobs: ({ call }) => call.wait('work', answer),
  });
  const server = createHttpServer({
    ...serverOptions(recording),
    forwarding: {
      shards: [{ id: 0, leaderNews, knownLeader: leader, suspectLeader: () => undefined }, ...others],
      credentialFor: () => credential,
      mark: () => signForwarded(SECRET, 'a-node', 0),
      isMark: (text) => isForwarded(SECRET, text, 0),
      trust: new PeerTrust(''),
    },
  });
  await server.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => server.close());
  const { port } = server.server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, close: () => server.close() };
}

const AUTHORIZATION = `Bearer ${OPERATOR_KEY}`;
const lasting = (url: string): KnownLeader => ({ url, over: new AbortController().signal });

/** Sends a request with a target of the test's choice, which no client library would send. */
async function askFor(port: number, target: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  let said = '';
  socket.on('data', (chunk) => {
    said += chunk;
  });
  socket.write(
    `GET ${target} HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZATION}\r\nconnection: close\r\n\r\n`,
  );
  await once(socket, 'close');
  return said;
}

const pauseAt = (url: string) =>
  request(`${url}/v1/queues/mail/pause`, { method: 'POST', headers: { authorization: AUTHORIZATION } });

const askAsWorker = (url: string, verb: string, body: object) =>
  request(`${url}/v1/workers/${OTHER_ID}/${verb}`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const claimAt = (url: string) => askAsWorker(url, 'claim', { max: 1, wait: '60s' });
const reportAt = (url: string) => askAsWorker(url, 'report', { results: [] });

describe('a request that only the leader can carry out', () => {
  it('reaches the leader as it was made: path, query, key and body', async () => {
    const seen: unknown[] = [];
    const leader = await listening(async (message, response) => {
      let body = '';
      for await (const piece of message) body += piece;
      seen.push([message.method, message.url, message.headers.authorization, body]);
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    const node = await follower(() => lasting(leader.url));
    const answer = await claimAt(node.url);
    expect([answer.statusCode, await answer.body.json()]).toEqual([200, { here: true }]);
    expect(await askFor(node.port, '/v1/queues/..?')).toContain('{"here":true}');
    expect(seen).toEqual([
      ['POST', `/v1/workers/${OTHER_ID}/claim`, AUTHORIZATION, '{"max":1,"wait":"60s"}'],
      ['GET', '/v1/queues/..?', AUTHORIZATION, ''],
    ]);
  });

  it('goes to the leader of the shard that it is about', async () => {
    const [wrong, right] = await Promise.all(
      [0, 1].map((shard) => listening((_, response) => response.end(`{"shard":${shard}}`))),
    );
    const elsewhere = () => Promise.reject(new LeaderElsewhere(1, 'somewhere'));
    const other = {
      ...{ id: 1, leaderNews: new News(), suspectLeader: () => undefined },
      knownLeader: () => lasting(right!.url),
    };
    const node = await nodeWith(() => lasting(wrong!.url), elsewhere, new News(), { others: [other] });
    expect(await (await claimAt(node.url)).body.json()).toEqual({ shard: 1 });
  });

  it('waits for no others if a worker makes it, and is refused when too many wait already', async () => {
    const asked = new Happening<void>();
    let answerAll = () => {};
    const opened = new Promise<void>((resolve) => {
      answerAll = resolve;
    });
    const leader = await listening(async ({ url }, response) => {
      response.setHeader('content-type', 'application/json');
      if (url?.startsWith('/v1/queues')) {
        asked.happen();
        await opened;
      }
      response.end('{"here":true}');
    });
    const known = lasting(leader.url);
    const node = await follower(() => known);
    const list = (tenant: string) =>
      request(`${node.url}/v1/queues`, {
        headers: { authorization: AUTHORIZATION, 'punctual-tenant': tenant },
        dispatcher: clients,
      });
    const clients = new Agent({ connections: null });
    onTestFinished(() => clients.destroy());
    const lists = Array.from({ length: 1_025 }, () => list('loud'));
    // The leader is asked by as many as there are connections; the others wait for one of them.
    await asked.times(256);
    const refused = await Promise.race(lists);
    expect(await (await reportAt(node.url)).body.json()).toEqual({ here: true });
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(await refused.body.json()).toMatchObject({ code: 'TOO_BUSY' });
    const other = list('calm');
    answerAll();
    expect((await other).statusCode).toBe(200);
    const answers = await Promise.all(lists);
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1_024);
  });

  it('is passed on once, and only a node can say that it was', async () => {
    const marks: unknown[] = [];
    const leader = await listening((message, response) => {
      marks.push(message.headers['punctual-forwarded']);
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    const node = await follower(() => lasting(leader.url));
    const ask = (mark: string) =>
      request(`${node.url}/v1/queues`, {
        headers: { authorization: AUTHORIZATION, 'punctual-forwarded': mark },
      });
    const byClient = await ask('1');
    expect([byClient.statusCode, await byClient.body.json()]).toEqual([200, { here: true }]);
    const byNode = await ask(String(marks[0]));
    expect([byNode.statusCode, await byNode.body.json()]).toMatchObject([503, { code: 'NO_LEADER' }]);
    expect(marks).toHaveLength(1);
  });

  it('never takes its key to another place, whatever its target names', async () => {
    const visits: string[] = [];
    const elsewhere = await listening((message, response) => {
      visits.push(message.url!);
      response.end('{}');
    });
    const leader = await listening((_, response) => response.end('{}'));
    const node = await follower(() => lasting(leader.url));
    const host = `127.0.0.1:${elsewhere.port}`;
    for (const target of [`http://${host}/v1/queues`, `//${host}/v1/queues`, `/\\${host}/v1/queues`, '*']) {
      expect(await askFor(node.port, target)).toMatch(/^HTTP\/1.1 40[04] /);
    }
    expect(visits).toEqual([]);
  });

  it.each([
    ['a claim', claimAt],
    ['a report', reportAt],
  ])('is made again at the next leader when the term ends at which it waits: %s', async (_, ask) => {
    const asked = new Happening<void>();
    const hung = await listening(() => asked.happen());
    const next = await listening((_, response) => {
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    const term = new AbortController();
    let leader: KnownLeader = { url: hung.url, over: term.signal };
    const node = await follower(() => leader);
    const answer = ask(node.url);
    await asked.times(1);
    leader = lasting(next.url);
    term.abort();
    expect(await (await answer).body.json()).toEqual({ here: true });
  });

  it('waits for the next leader however long it has waited at the last, which counts towards its wait', async () => {
    const asked = new Happening<void>();
    const hung = await listening(() => asked.happen());
    const waited: unknown[] = [];
    const next = await listening(({ headers }, response) => {
      waited.push(headers['punctual-waited']);
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    const term = new AbortController();
    const news = new News();
    const looks = new Happening<void>();
    let leader: KnownLeader | null = { url: hung.url, over: term.signal };
    const node = await follower(() => {
      looks.happen();
      return leader;
    }, news);
    const answer = claimAt(node.url);
    await asked.times(1);
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 12_000);
    onTestFinished(() => clock.mockRestore());
    leader = null;
    term.abort();
    await looks.times(2);
    leader = lasting(next.url);
    news.tell();
    expect(await (await answer).body.json()).toEqual({ here: true });
    expect(waited).toHaveLength(1);
    expect(Number(waited[0])).toBeGreaterThanOrEqual(12_000);
  });

  it('is answered with NO_LEADER when the term ends before it is known what became of it', async () => {
    const asked = new Happening<void>();
    const hung = await listening(() => asked.happen());
    const term = new AbortController();
    const node = await follower(() => ({ url: hung.url, over: term.signal }));
    const answer = pauseAt(node.url);
    await asked.times(1);
    term.abort();
    const { statusCode, headers, body } = await answer;
    expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
    expect(await body.json()).toMatchObject({ code: 'NO_LEADER' });
  });

  it('goes on to the next leader when the one it waits at stops', async () => {
    let asked = () => {};
    const waiting = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const stopping = await nodeWith(
      () => null,
      (signal) => {
        asked();
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    );
    const next = await listening((_, response) => {
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    let leader = stopping.url;
    const node = await follower(() => lasting(leader));
    const answer = claimAt(node.url);
    await waiting;
    leader = next.url;
    await stopping.close();
    expect(await (await answer).body.json()).toEqual({ here: true });
  });

  it('waits for a leader while there is none, and goes to it when there is news of one', async () => {
    const leader = await listening((_, response) => {
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    const news = new News();
    const looks = new Happening<void>();
    let known: KnownLeader | null = null;
    const node = await follower(() => {
      looks.happen();
      return known;
    }, news);
    const answer = claimAt(node.url);
    await looks.times(1);
    known = lasting(leader.url);
    news.tell();
    expect(await (await answer).body.json()).toEqual({ here: true });
    expect(looks.all).toHaveLength(2);
  });

  it('is answered with NO_LEADER in the end when the one that counts as leader never leads', async () => {
    let offset = 0;
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + offset);
    onTestFinished(() => clock.mockRestore());
    let asks = 0;
    const never = await listening((_, response) => {
      asks += 1;
      // Each time it takes its time to say so, as if it had been waited at.
      offset += 3_000;
      response.writeHead(503, { 'punctual-no-leader': '1' }).end();
    });
    const known = lasting(never.url);
    const node = await follower(() => known);
    const { statusCode, body } = await claimAt(node.url);
    expect([statusCode, await body.json()]).toMatchObject([503, { code: 'NO_LEADER' }]);
    expect(asks).toBe(3);
  });

  it('is made again while the leader does not believe the node that has checked the key', async () => {
    let asks = 0;
    const leader = await listening((_, response) => {
      asks += 1;
      // As with clocks that differ for a moment.
      if (asks < 3) response.writeHead(401, { 'content-type': 'application/problem+json' }).end('{}');
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"epoch":1,"jobs":[]}');
    });
    const known = lasting(leader.url);
    const elsewhere = () => Promise.reject(new LeaderElsewhere(0, 'somewhere'));
    const node = await nodeWith(() => known, elsewhere, new News(), { credential: 'a-token' });
    const { statusCode, body } = await claimAt(node.url);
    expect([statusCode, await body.json()]).toMatchObject([200, { jobs: [] }]);
    expect(asks).toBe(3);
    // What the client brings itself, such as the token of an attempt, is its own business.
    asks = 0;
    const passing = await follower(() => known);
    expect((await claimAt(passing.url)).statusCode).toBe(401);
  });

  it('keeps a node that closes for two seconds at most when the leader does not answer', async () => {
    const asked = new Happening<void>();
    const hung = await listening(() => asked.happen());
    const known = lasting(hung.url);
    const node = await follower(() => known);
    const answer = pauseAt(node.url);
    await asked.times(1);
    await node.close();
    expect((await answer).statusCode).toBe(503);
  });

  it('does not keep a node from closing while it waits for work at the leader', async () => {
    let asked = () => {};
    const waiting = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const busy = await listening(() => asked());
    const node = await follower(() => lasting(busy.url));
    const answer = claimAt(node.url);
    await waiting;
    await node.close();
    const { statusCode, body } = await answer;
    expect([statusCode, await body.json()]).toMatchObject([503, { code: 'SHUTTING_DOWN' }]);
  });

  it('is answered before the node closes when the leader has begun to carry it out', async () => {
    let answerNow = () => {};
    const leader = await listening((_, response) => {
      answerNow = () => response.setHeader('content-type', 'application/json').end('{"here":true}');
      asked.happen();
    });
    const asked = new Happening<void>();
    const node = await follower(() => lasting(leader.url));
    const said = askFor(node.port, '/v1/queues');
    await asked.times(1);
    const closed = node.close();
    answerNow();
    expect(await said).toContain('{"here":true}');
    await closed;
  });

  it('does not keep a node from closing while it waits for a leader', async () => {
    const looks = new Happening<void>();
    const node = await follower(() => {
      looks.happen();
      return null;
    });
    const answer = claimAt(node.url);
    await looks.times(1);
    await node.close();
    const { statusCode, body } = await answer;
    expect([statusCode, await body.json()]).toMatchObject([503, { code: 'SHUTTING_DOWN' }]);
  });

  it('is made again at the next leader when it only reads and the leader dies', async () => {
    const next = await listening((_, response) => {
      response.setHeader('content-type', 'application/json').end('{"here":true}');
    });
    let leader = '';
    const dying = await listening((_, response) => {
      leader = next.url;
      response.destroy();
    });
    leader = dying.url;
    const node = await follower(() => lasting(leader));
    expect(await askFor(node.port, '/v1/queues')).toContain('{"here":true}');
  });

  it('is answered with NO_LEADER when the leader dies in the middle of its answer', async () => {
    const leader = await listening((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    });
    const node = await follower(() => lasting(leader.url));
    const { statusCode, body } = await pauseAt(node.url);
    expect([statusCode, await body.json()]).toMatchObject([503, { code: 'NO_LEADER' }]);
  });
});

describe('a target that is not a path of this server', () => {
  it.each(['http://a/livez', '//a/livez', '*', 'livez'])('is refused on every route: %s', async (target) => {
    const node = await follower(() => null);
    const said = await askFor(node.port, target);
    expect(said).toMatch(/^HTTP\/1.1 400 /);
    expect(said).toContain('MALFORMED_REQUEST');
  });
});
