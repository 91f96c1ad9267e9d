import { mkdir, writeFile } from 'node:fs/promises';
import { request as plainRequest } from 'node:http';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestNode } from '../../node-for-tests.js';
import { temporaryFolder } from '../../temporary-folder.js';

const SCRIPT = `console.log(${JSON.stringify('x'.repeat(2_000))});`;
const ASSET = 'assets/index-A1b2C3d4.js';

let folder: string;
let node: TestNode;
let prefixed: TestNode;

beforeAll(async () => {
  folder = await temporaryFolder();
  await mkdir(join(folder, 'assets'));
  const page = '<!doctype html><html><head lang="en"><title>t</title></head><body></body></html>';
  await writeFile(join(folder, 'index.html'), page);
  await writeFile(join(folder, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  await writeFile(join(folder, ASSET), SCRIPT);
  await writeFile(join(folder, `${ASSET}.br`), brotliCompressSync(SCRIPT));
  await writeFile(join(folder, `${ASSET}.gz`), gzipSync(SCRIPT));
  node = await TestNode.start({ dashboard: folder });
  const { database } = node;
  prefixed = await TestNode.start({ dashboard: folder, database, settings: { basePath: '/ops/punctual/' } });
}, 60_000);
afterAll(async () => {
  await prefixed.stop();
  await node.stop();
});

const page = (of: TestNode, path: string, headers: Record<string, string> = { accept: 'text/html' }) =>
  fetch(of.url + path, { headers });

/** What came over the wire, which fetch would decompress. */
function raw(path: string, encoding: string): Promise<{ headers: Record<string, unknown>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const asked = plainRequest(node.url + path, { headers: { 'accept-encoding': encoding } }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('end', () => resolve({ headers: answer.headers, body: Buffer.concat(pieces) }));
    });
    asked.on('error', reject).end();
  });
}

describe('the shell', () => {
  it('is public, and nothing in it may run that is not in a file of the node', async () => {
    const answer = await page(node, '/');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = answer.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("trusted-types 'none'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect(answer.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(answer.headers.get('x-frame-options')).toBe('DENY');
  });

  it.each([
    ['/', './'],
    ['/jobs', './'],
    ['/jobs?state=failed', './'],
    ['/jobs/0198c0de', '../'],
    ['/schedules/a.b/edit', '../../'],
    ['/schedules/a%2Fb', '../'],
  ])(
    'leads from %s back to the root of the node, whatever prefix a proxy has stripped',
    async (path, base) => {
      const text = await (await page(node, path)).text();
      expect(text).toContain(`<head lang="en"><base href="${base}"><title>`);
    },
  );

  it('names the prefix of the setting, with and without a proxy that strips it', async () => {
    for (const path of ['/', '/jobs/1', '/ops/punctual', '/ops/punctual/', '/ops/punctual/jobs/1']) {
      expect(await (await page(prefixed, path)).text()).toContain('<base href="/ops/punctual/">');
    }
    expect((await prefixed.ask('GET', '/ops/punctual/v1/queues')).status).toBe(200);
    expect((await prefixed.ask('GET', '/v1/queues')).status).toBe(200);
    expect((await prefixed.ask('GET', '/ops/punctualv1/queues')).status).toBe(404);
  });

  it('is kept by browsers, which ask whether it has changed', async () => {
    const first = await page(node, '/');
    expect(first.headers.get('cache-control')).toBe('no-cache');
    const tag = first.headers.get('etag')!;
    const second = await page(node, '/', { accept: 'text/html', 'if-none-match': tag });
    expect([second.status, await second.text()]).toEqual([304, '']);
    const other = await page(node, '/jobs/1', { accept: 'text/html', 'if-none-match': tag });
    expect(other.status).toBe(200);
  });

  it.each(['/v1/nothing', '/v1', '/docs/nothing', '/internal/nothing', '/metrics/x'])(
    'is not the answer of %s, which belongs to the API',
    async (path) => {
      const answer = await page(node, path);
      expect(answer.status).toBe(404);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
    },
  );

  it('is not the answer to programs, to scripts that are missing, and to other methods', async () => {
    expect((await page(node, '/jobs', { accept: '*/*' })).status).toBe(404);
    expect((await page(node, '/assets/gone-12345678.js', { accept: '*/*' })).status).toBe(404);
    expect(
      (await fetch(`${node.url}/jobs`, { method: 'POST', headers: { accept: 'text/html' } })).status,
    ).toBe(404);
    expect((await fetch(`${node.url}/`, { method: 'HEAD' })).status).toBe(200);
  });
});

describe('a file', () => {
  it('whose name has a hash is kept for ever', async () => {
    const answer = await page(node, `/${ASSET}`, { accept: '*/*' });
    expect(await answer.text()).toBe(SCRIPT);
    expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const icon = await page(node, '/favicon.svg', { accept: 'image/*' });
    expect(icon.headers.get('cache-control')).toBe('no-cache');
    expect(icon.headers.get('content-type')).toBe('image/svg+xml');
  });

  it.each([
    ['gzip, deflate, br', 'br', brotliCompressSync(SCRIPT).length],
    ['gzip', 'gzip', gzipSync(SCRIPT).length],
    ['br;q=0, gzip;q=0.5', 'gzip', gzipSync(SCRIPT).length],
    ['identity', undefined, SCRIPT.length],
  ])('is sent as it was compressed by the build: %s', async (accepted, encoding, bytes) => {
    const { headers, body } = await raw(`/${ASSET}`, accepted);
    expect([headers['content-encoding'], body.length, headers.vary]).toEqual([
      encoding,
      bytes,
      'accept-encoding',
    ]);
    if (encoding === 'br') expect(brotliDecompressSync(body).toString()).toBe(SCRIPT);
  });

  it('outside the folder cannot be reached', async () => {
    for (const path of ['/assets/..%2f..%2fpackage.json', '/%2e%2e/package.json', `/${ASSET}.br`]) {
      const { body } = await raw(path, 'identity');
      expect(body.toString()).toContain('"code":"NOT_FOUND"');
    }
  });
});

it('without a built dashboard the root leads to the reference', async () => {
  const bare = await TestNode.start({ dashboard: join(folder, 'none'), database: node.database });
  try {
    const answer = await fetch(`${bare.url}/`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'docs']);
    expect((await page(bare, '/jobs')).status).toBe(404);
  } finally {
    await bare.stop();
  }
}, 60_000);

it('the reference works below a prefix, too: it links by relative addresses', async () => {
  const text = await (await fetch(`${prefixed.url}/ops/punctual/docs`)).text();
  expect(text).toContain('href="docs/style.css"');
  expect(text).not.toMatch(/href="\//);
});

it.each(['punctual', '/a//b', '/a/../b', '/a b', '/"><script>'])(
  'a prefix must be a path: %s',
  async (basePath) => {
    await expect(TestNode.start({ database: node.database, settings: { basePath } })).rejects.toMatchObject({
      code: 'CONFIGURATION',
    });
  },
);
