import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { TestNode } from '../node-for-tests.js';

it('a node stops although a client has connected and asked for nothing', async () => {
  const node = await TestNode.start();
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(node.url).port) });
  await once(socket, 'connect');
  // One that the node has accepted for sure: requests are served in the order of their connections.
  await node.get('GET', '/v1/cluster');
  const closed = once(socket, 'close');
  await node.stop();
  await closed;
  expect(socket.destroyed).toBe(true);
});
