import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { testCertificate } from '../../test/test-certificate.js';
import { ApiClient } from '../client/api-client.js';
import { HttpTransport } from './http-transport.js';

let requests = 0;
const answer = () => {
  requests += 1;
};

async function failure(server: ReturnType<typeof createHttpServer>, scheme: 'http' | 'https') {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = new HttpTransport({ urls: [url], apiKey: 'x' });
  onTestFinished(async () => {
    await transport.close();
    server.closeAllConnections();
    server.close();
  });
  requests = 0;
  return transport.request('POST', '/v1/jobs', { body: {} }).then(
    () => null,
    (error: unknown) => error,
  );
}

it('a certificate of an unknown authority is explained with the variable that names it', async () => {
  expect(await failure(createHttpsServer(testCertificate('node'), answer), 'https')).toMatchObject({
    code: 'UNREACHABLE',
    sent: false,
    message: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
  });
  expect(requests).toBe(0);
});

it('a certificate of an unknown authority is explained if there are several nodes, too', async () => {
  const server = createHttpsServer(testCertificate('node'), answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const urls = [`https://127.0.0.1:${port}`, `https://localhost:${port}`];
  const client = new ApiClient({ urls, apiKey: 'x', retryForMs: 0 });
  onTestFinished(async () => {
    await client.close();
    server.close();
  });
  await expect(client.request('GET', '/v1/jobs')).rejects.toThrow(/None of the nodes.*NODE_EXTRA_CA_CERTS/);
});

it('https to a node that serves http says so, and that nothing was sent', async () => {
  expect(await failure(createHttpServer(answer), 'https')).toMatchObject({
    code: 'UNREACHABLE',
    sent: false,
    message: expect.stringContaining('Should the address begin with http://?'),
  });
  expect(requests).toBe(0);
});

it('http to a node that serves https says that the scheme may be wrong', async () => {
  expect(await failure(createHttpsServer(testCertificate('node'), answer), 'http')).toMatchObject({
    code: 'UNREACHABLE',
    message: expect.stringContaining('must begin with https://'),
  });
  expect(requests).toBe(0);
});
