import { once } from 'node:events';
import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { Agent, request } from 'undici';
import { expect, it, onTestFinished, vi } from 'vitest';
import { resolveConfig } from '../../src/core/config.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { CertificateFiles } from '../../src/host/certificate.js';
import { startNode } from '../../src/node/start-node.js';
import { createTestDatabase } from '../database.js';
import { MemoryLog } from '../memory-log.js';
import { TestNode } from '../node-for-tests.js';
import { temporaryFolder } from '../temporary-folder.js';
import { testCertificate } from '../test-certificate.js';

/** A certificate in files. */
async function certificateFiles() {
  const folder = await temporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  const paths = { cert: join(folder, 'node.pem'), key: join(folder, 'node.key') };
  let writes = 0;
  const write = async (certificate = testCertificate(`test ${writes}`)) => {
    writes += 1;
    for (const part of ['cert', 'key'] as const) {
      await writeFile(paths[part], certificate[part]);
      // Two writes within one tick of the file system's clock would look like one.
      await utimes(paths[part], writes, writes);
    }
    return certificate;
  };
  return { paths, write };
}

/** The certificate that a server shows. */
async function shownBy(url: string): Promise<PeerCertificate> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerCertificate();
  socket.destroy();
  return certificate;
}

it('two nodes with one self-signed certificate serve HTTPS and forward to each other', async () => {
  const { paths, write } = await certificateFiles();
  const { cert } = await write();
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const settings = { tlsCert: paths.cert, tlsKey: paths.key };
  const nodes = [await TestNode.start({ database, settings }), await TestNode.start({ database, settings })];
  const agent = new Agent({ connect: { ca: cert } });
  onTestFinished(async () => {
    await agent.close();
    await Promise.all(nodes.map((node) => node.stop()));
  });
  for (const [i, node] of nodes.entries()) {
    expect(node.url).toMatch(/^https:/);
    // Only the leader can make a tenant, so one of the two forwards it.
    const answer = await request(`${node.url}/v1/tenants`, {
      method: 'POST',
      headers: { authorization: `Bearer ${node.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ id: `tenant-${i}` }),
      dispatcher: agent,
    });
    expect([answer.statusCode, await answer.body.json()]).toMatchObject([201, { id: `tenant-${i}` }]);
  }
});

it('a renewed certificate is used without a restart; what cannot be used changes nothing', async () => {
  const { paths, write } = await certificateFiles();
  const first = await write();
  const files = new CertificateFiles(paths, SILENT_LOG);
  const second = await write();
  files.look();
  expect(files.current).toEqual(second);
  await write({ cert: first.cert, key: second.key });
  expect(() => files.look()).toThrow(/cannot be used together/);
  expect(files.current).toEqual(second);
  await rm(paths.key);
  expect(() => files.look()).toThrow(/cannot be read/);
  expect(files.current).toEqual(second);
});

it('a node shows the new certificate to new connections', async () => {
  const { paths, write } = await certificateFiles();
  await write();
  const node = await TestNode.start({ settings: { tlsCert: paths.cert, tlsKey: paths.key } });
  onTestFinished(() => node.stop());
  expect((await shownBy(node.url)).subject.CN).toBe('test 0');
  await write();
  await expect
    .poll(async () => (await shownBy(node.url)).subject.CN, { timeout: 20_000, interval: 200 })
    .toBe('test 1');
});

it('a certificate that ends soon is warned about', async () => {
  const { paths, write } = await certificateFiles();
  await write(testCertificate('short', 3));
  const log = new MemoryLog();
  new CertificateFiles(paths, log);
  expect(log.lines).toMatchObject([{ level: 'warn', message: 'the certificate ends soon' }]);
});

it('a certificate that comes to its end while the node runs is warned about once a day', async () => {
  const { paths, write } = await certificateFiles();
  await write(testCertificate('long', 60));
  const log = new MemoryLog();
  const files = new CertificateFiles(paths, log);
  const now = vi.spyOn(Date, 'now');
  onTestFinished(() => now.mockRestore());
  const startedAt = performance.timeOrigin + performance.now();
  for (let hours = 0; hours < 48 * 24; hours += 6) {
    now.mockReturnValue(startedAt + hours * 3_600_000);
    files.look();
  }
  expect(log.lines.map(({ message }) => message)).toEqual([
    'the certificate ends soon',
    'the certificate ends soon',
  ]);
});

it('connections beyond the limit are told so with TLS, too', async () => {
  const { paths, write } = await certificateFiles();
  await write();
  const settings = { tlsCert: paths.cert, tlsKey: paths.key, maxConnections: 2 };
  const node = await TestNode.start({ settings });
  onTestFinished(() => node.stop());
  const open = async () => {
    const socket = connect({ port: node.node.port, host: '127.0.0.1', rejectUnauthorized: false });
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    return socket.setEncoding('utf8').on('error', () => undefined);
  };
  const ask = async (socket: Awaited<ReturnType<typeof open>>) => {
    socket.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n');
    const [said] = await once(socket, 'data');
    return String(said).split('\r\n')[0];
  };
  const [first, second, third] = [await open(), await open(), await open()];
  expect(await ask(third)).toBe('HTTP/1.1 503 Service Unavailable');
  expect(await ask(first)).toBe('HTTP/1.1 200 OK');
  second.destroy();
  await vi.waitFor(async () => expect(await ask(await open())).toBe('HTTP/1.1 200 OK'), 5_000);
});

it.each(['0.0.0.0', '::', '192.0.2.1'])(
  'a node refuses to listen on %s without TLS, unless told that it is safe',
  async (host) => {
    const settings = { databaseUrl: 'postgres://nowhere.invalid/x', host, port: 0 };
    const { config } = resolveConfig(settings, {}, () => '');
    await expect(startNode({ config, log: SILENT_LOG })).rejects.toMatchObject({
      code: 'CONFIGURATION',
      message: expect.stringContaining('--insecure'),
    });
  },
);

it('a node listens on every address without TLS when the operator says that it is safe', async () => {
  const node = await TestNode.start({ settings: { host: '0.0.0.0', insecure: true } });
  onTestFinished(() => node.stop());
  expect((await fetch(`http://127.0.0.1:${node.node.port}/livez`)).status).toBe(200);
});

it('a certificate without its key is refused', () => {
  const resolve = () => resolveConfig({ tlsCert: 'node.pem' }, {}, () => '');
  expect(resolve).toThrow(/both tlsCert and tlsKey/);
});
