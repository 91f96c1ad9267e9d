import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Happening } from '../../test/happening.js';
import { SILENT_LOG } from '../core/log.js';
import { HintSender } from './hint-sender.js';
import { LeaderEnds } from './leader-ends.js';
import { PeerCaller } from './peer-caller.js';

const NEVER = new AbortController().signal;
const token = () => 'token';

/** Another node, and what it was asked about which shard. */
async function peer() {
  const asked = new Happening<readonly unknown[]>();
  const server = createServer((request, response) => {
    asked.happen([request.method, request.url!.split('/')[2], request.headers['punctual-shard']]);
    if (request.method === 'GET') response.writeHead(200).flushHeaders();
    else response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function caller(): PeerCaller {
  const peers = new PeerCaller(SILENT_LOG, token);
  onTestFinished(() => peers.close());
  return peers;
}

it('hints name the shard that has the jobs', async () => {
  const { asked, url } = await peer();
  new HintSender(caller(), 2, () => url).send({ jobs: [], startBefore: 1 });
  await asked.times(1);
  expect(asked.all).toEqual([['POST', 'hints', '2']]);
});

it('a line of job ends names the shard whose jobs are waited for, when it is opened and when it is changed', async () => {
  const { asked, url } = await peer();
  const peers = caller();
  const ends = await LeaderEnds.open({ shard: 2, url, termOver: NEVER, peers, onEnded: () => undefined });
  const changed = ends.change(['a'], []);
  changed.catch(() => undefined);
  await asked.times(2);
  ends.close();
  expect(asked.all).toEqual([
    ['GET', 'ends', '2'],
    ['POST', 'ends', '2'],
  ]);
});

it('news about no shard in particular name none', async () => {
  const { asked, url } = await peer();
  expect(await caller().post(url, '/internal/node-joined', {})).toBe(true);
  expect(asked.all).toEqual([['POST', 'node-joined', undefined]]);
});

it('a question to a node that begins to answer and then hangs, or is not there, has no answer', async () => {
  const { asked, url } = await peer();
  expect(await caller().get(url, '/internal/figures', 2)).toBeNull();
  expect(asked.all).toEqual([['GET', 'figures', '2']]);
  expect(await caller().get('http://127.0.0.1:1', '/internal/figures', 2)).toBeNull();
});
