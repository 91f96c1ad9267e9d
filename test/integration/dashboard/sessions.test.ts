import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { NewKeyView } from '../../../src/core/access.js';
import type { AuditView } from '../../../src/core/audit.js';
import type { Session, SignInCode } from '../../../src/core/session.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { EventListener } from '../../event-listener.js';
import { type Answer, TestNode } from '../../node-for-tests.js';

let node: TestNode;
/** Another node of the cluster, which has seen none of the sign-ins. */
let other: TestNode;
let reader: NewKeyView;

beforeAll(async () => {
  node = await TestNode.start();
  other = await TestNode.start({ database: node.database, settings: { insecure: true } });
  const body = { name: 'reader', tenant: 'acme', scopes: ['read'], queues: ['mail'] };
  reader = await node.get<NewKeyView>('POST', '/v1/keys', { body });
}, 60_000);
afterAll(async () => {
  await other.stop();
  await node.stop();
});

/** What a browser adds to requests of a page of the node. */
const OWN = { 'sec-fetch-site': 'same-origin', 'punctual-dashboard': '1' };

const signIn = (body: unknown, headers: Record<string, string> = OWN, at = node) =>
  at.ask<Session>('POST', '/v1/session', { key: null, body, headers });

function cookieOf({ headers }: Answer<unknown>): string {
  return headers.get('set-cookie')!.split(';')[0]!;
}

async function sessionOf(key: string): Promise<string> {
  const answer = await signIn({ key });
  expect(answer.status).toBe(201);
  return cookieOf(answer);
}

const withCookie = (cookie: string, headers: Record<string, string> = OWN) => ({
  key: null,
  headers: { cookie, ...headers },
});

describe('signing in with a key', () => {
  it('sets a cookie that scripts cannot read and other hosts cannot set, and tells who it is', async () => {
    const answer = await signIn({ key: reader.key });
    const cookie = answer.headers.get('set-cookie')!;
    expect(cookie).toMatch(/^__Host-punctual-[0-9a-f]{8}=[\w.-]+; Path=\/; Max-Age=43\d\d\d; /);
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Secure']) expect(cookie).toContain(part);
    expect(cookie).not.toContain('Domain');
    expect(cookie).not.toContain(reader.key);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const { expiresAt, ...who } = answer.body;
    expect(who).toMatchObject({ tenant: 'acme', operator: false, scopes: ['read'], queues: ['mail'] });
    expect(who).toMatchObject({ name: 'reader', keyId: reader.id, tasks: null, node: node.node.id });
    expect(cookie).toContain(`punctual-${who.cluster}=`);
    expect(Date.parse(expiresAt!) - Date.now()).toBeGreaterThan(11 * 3_600_000);
  });

  it('counts as a request of the key, because it writes into the audit', async () => {
    const limited = await TestNode.start({ database: node.database, settings: { keyRate: 2 } });
    onTestFinished(() => limited.stop());
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => signIn({ key: reader.key }, OWN, limited)),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(5);
    expect(refused[0]!.body).toMatchObject({ code: 'RATE_LIMITED' });
  });

  it('works at every node, with the rights of the key and no others', async () => {
    const cookie = await sessionOf(reader.key);
    for (const at of [node, other]) {
      const who = await at.get<Session>('GET', '/v1/session', withCookie(cookie));
      expect([who.tenant, who.keyId, who.node]).toEqual(['acme', reader.id, at.node.id]);
      expect((await at.ask('GET', '/v1/jobs', withCookie(cookie))).status).toBe(200);
      const job = { ...withCookie(cookie), body: { task: 't' } };
      expect(await at.ask('POST', '/v1/jobs', job)).toMatchObject({
        status: 403,
        body: { code: 'FORBIDDEN' },
      });
    }
  });

  it('may change what the key may change, also at the leader', async () => {
    const cookie = await sessionOf(node.apiKey);
    for (const at of [node, other]) {
      const queue = `changed-at-${at.node.id}`;
      const change = { ...withCookie(cookie), body: { weight: 2 } };
      expect((await at.ask('PATCH', `/v1/queues/${queue}`, change)).status).toBe(200);
      const audit = await node.get<{ data: AuditView[] }>('GET', `/v1/audit?subject=${queue}`);
      expect(audit.data[0]).toMatchObject({ action: 'queue.change', keyName: 'tester' });
    }
  });

  it('with a key that is not known, or with something else, does nothing', async () => {
    const wrong = [`${reader.key.slice(0, -1)}x`, 'pk_tn_x', 'eyJhbGciOi.x.y', node.node.localKey];
    for (const key of wrong) {
      const answer = await signIn({ key });
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null]);
    }
    for (const body of [{}, { key: reader.key, code: 'x' }]) expect((await signIn(body)).status).toBe(422);
  });

  it('is in the audit, under the name of the key', async () => {
    await sessionOf(reader.key);
    const { data } = await node.get<{ data: AuditView[] }>('GET', '/v1/audit?action=session.create&limit=1');
    expect(data[0]).toMatchObject({
      ...{ action: 'session.create', kind: 'session', subject: reader.id, tenant: 'acme' },
      ...{ keyId: reader.id, keyName: 'reader', after: { by: 'key' }, outcome: 'done' },
    });
    expect(JSON.stringify(data)).not.toContain(reader.key);
  });
});

describe('a session', () => {
  it('ends with its key, at once at every node, and so do the streams that it has opened', async () => {
    const body = { name: 'short', tenant: 'acme', scopes: ['read'] };
    const { key, id } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
    const cookie = await sessionOf(key);
    const listener = await EventListener.open({ url: other.url, cookie });
    expect((await other.ask('GET', '/v1/session', withCookie(cookie))).status).toBe(200);
    await node.get('DELETE', `/v1/keys/${id}`);
    await listener.ended;
    for (const at of [node, other])
      await expect
        .poll(async () => (await at.ask('GET', '/v1/session', withCookie(cookie))).status, { timeout: 5_000 })
        .toBe(401);
  });

  it('ends when its time is over, and no later than its key', async () => {
    const short = await TestNode.start({ database: node.database, settings: { sessionLifetime: '1m' } });
    try {
      const answer = await signIn({ key: node.apiKey }, OWN, short);
      expect(answer.headers.get('set-cookie')).toMatch(/Max-Age=(59|60);/);
      expect(Date.parse(answer.body.expiresAt!) - Date.now()).toBeLessThan(62_000);
    } finally {
      await short.stop();
    }
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    const body = { name: 'brief', tenant: 'acme', scopes: ['read'], expiresAt };
    const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
    const cookie = await sessionOf(key);
    await expect
      .poll(async () => (await node.ask('GET', '/v1/session', withCookie(cookie))).status, { timeout: 5_000 })
      .toBe(401);
  }, 30_000);

  it('that was changed, or is a token for something else, is none', async () => {
    const cookie = await sessionOf(reader.key);
    const [name, token] = cookie.split('=') as [string, string];
    const [head, claims, seal] = token.split('.') as [string, string, string];
    const turned = Buffer.from(claims, 'base64url').reverse().toString('base64url');
    for (const value of [`${head}.${turned}.${seal}`, `${head}.${claims}.`, '', reader.key, 'x'])
      expect((await node.ask('GET', '/v1/session', withCookie(`${name}=${value}`))).status).toBe(401);
    // Nor does it count as a bearer token.
    expect((await node.ask('GET', '/v1/session', { key: token })).status).toBe(401);
    // A plain cookie counts where the operator allows them only.
    const plain = `${name.slice('__Host-'.length)}=${token}`;
    expect((await node.ask('GET', '/v1/session', withCookie(plain))).status).toBe(401);
    expect((await other.ask('GET', '/v1/session', withCookie(plain))).status).toBe(200);
  });

  it('is forgotten by the browser that signs out', async () => {
    const answer = await node.ask('DELETE', '/v1/session', { key: null, headers: OWN });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-punctual-\w+=; Path=\/; Max-Age=0; /);
  });

  it('does not hide a key that is wrong', async () => {
    const cookie = await sessionOf(node.apiKey);
    const asked = { key: 'pk_op_wrong', headers: { cookie, ...OWN } };
    expect((await node.ask('GET', '/v1/session', asked)).status).toBe(401);
  });
});

describe('a request that a browser adds the session to', () => {
  let cookie: string;
  let own: string;
  beforeAll(async () => {
    cookie = await sessionOf(node.apiKey);
    own = new URL(node.url).origin;
  });

  const change = (headers: Record<string, string>) =>
    node.ask<{ code?: string }>('PATCH', '/v1/queues/q', {
      ...withCookie(cookie, headers),
      body: { weight: 2 },
    });
  const mark = { 'punctual-dashboard': '1' };

  it.each([
    ['another port of the same host', { ...mark, 'sec-fetch-site': 'same-site' }],
    ['another site', { ...mark, 'sec-fetch-site': 'cross-site' }],
    ['no page at all', { ...mark, 'sec-fetch-site': 'none' }],
    ['two places', { ...mark, 'sec-fetch-site': 'same-origin, cross-site' }],
    ['another origin, by an old browser', { ...mark, origin: 'http://127.0.0.1:1' }],
    ['a sandboxed page, by an old browser', { ...mark, origin: 'null' }],
    ['nowhere that it says', mark],
    ['a form of the same origin', { 'sec-fetch-site': 'same-origin' }],
    ['the same origin, with another mark', { 'sec-fetch-site': 'same-origin', 'punctual-dashboard': '0' }],
  ])('and comes from %s, changes nothing', async (_, headers) => {
    expect(await change(headers)).toMatchObject({ status: 403, body: { code: 'CROSS_SITE' } });
    const signedIn = await signIn({ key: reader.key }, headers);
    expect([signedIn.status, signedIn.headers.get('set-cookie')]).toEqual([403, null]);
    const signedOut = await node.ask('DELETE', '/v1/session', { key: null, headers });
    expect([signedOut.status, signedOut.headers.get('set-cookie')]).toEqual([403, null]);
    expect(
      (await node.get<{ data: { name: string }[] }>('GET', '/v1/queues')).data.map(({ name }) => name),
    ).not.toContain('q');
  });

  it('and comes from the page of the node, may change something', async () => {
    expect((await change({ ...mark, 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await change({ ...mark, origin: own })).status).toBe(200);
    // A proxy has ended TLS and has passed the name of the host on.
    expect((await change({ ...mark, origin: own.replace('http:', 'https:') })).status).toBe(200);
  });

  it('may read without the mark, but not for other pages', async () => {
    const read = async (site: string) =>
      (await node.ask('GET', '/v1/queues', withCookie(cookie, { 'sec-fetch-site': site }))).status;
    expect(await Promise.all(['same-origin', 'none', 'same-site', 'cross-site'].map(read))).toEqual([
      200, 200, 403, 403,
    ]);
  });

  it('needs none of that with a key in its header', async () => {
    const headers = { cookie, 'sec-fetch-site': 'cross-site' };
    expect(
      (await node.ask('POST', '/v1/keys', { headers, body: { name: 'k', operator: true } })).status,
    ).toBe(201);
  });
});

describe('signing in over a network in the clear', () => {
  const headers = {
    'punctual-dashboard': '1',
    'sec-fetch-site': 'same-origin',
    origin: 'http://10.1.2.3:8080',
  };

  it('is refused', async () => {
    expect(await signIn({ key: reader.key }, headers)).toMatchObject({
      status: 403,
      body: { code: 'INSECURE_SIGN_IN' },
    });
  });

  it('is possible where the operator says that it is safe, with a cookie that such a connection keeps', async () => {
    const answer = await signIn({ key: reader.key }, headers, other);
    const cookie = answer.headers.get('set-cookie')!;
    expect(cookie).toMatch(/^punctual-\w+=/);
    expect(cookie).not.toContain('Secure');
    expect(cookie).toContain('HttpOnly; SameSite=Strict');
    expect((await other.ask('GET', '/v1/session', withCookie(cookieOf(answer)))).status).toBe(200);
  });

  it('is not what a browser does that talks to a proxy over TLS', async () => {
    const answer = await signIn({ key: reader.key }, { ...headers, origin: 'https://punctual.example' });
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-/);
  });
});

describe('a code', () => {
  const makeCode = (key: string) => node.get<SignInCode>('POST', '/v1/session/codes', { key });

  it('signs in once, at any node, with the rights of the key that made it', async () => {
    const { code, expiresAt } = await makeCode(reader.key);
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(10 * 60_000);
    const answer = await signIn({ code }, OWN, other);
    expect(answer).toMatchObject({
      status: 201,
      body: { keyId: reader.id, tenant: 'acme', queues: ['mail'] },
    });
    expect((await node.ask('GET', '/v1/session', withCookie(cookieOf(answer)))).status).toBe(200);
    for (const at of [node, other]) expect((await signIn({ code }, OWN, at)).status).toBe(401);
    const { data } = await node.get<{ data: AuditView[] }>('GET', '/v1/audit?action=session.create&limit=1');
    expect(data[0]).toMatchObject({ keyName: 'reader', after: { by: 'code' } });
  });

  it('that several come with at a time, signs one of them in', async () => {
    const { code } = await makeCode(reader.key);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => signIn({ code }, OWN, i % 2 ? node : other)),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  });

  it('is nowhere in the database', async () => {
    const { code } = await makeCode(reader.key);
    const { rows } = await node.node.context.shards[0].pool.query('SELECT * FROM punctual.sign_in_codes');
    expect(rows.length).toBeGreaterThan(0);
    const text = JSON.stringify(rows);
    for (const part of [code, code.slice(3), Buffer.from(code.slice(3), 'base64url').toString('hex')])
      expect(text).not.toContain(part);
  });

  it('is of no use after its time, after its key, or if it was made up', async () => {
    const old = await makeCode(reader.key);
    await node.node.context.shards[0].pool.query('UPDATE punctual.sign_in_codes SET expires_at = 1');
    expect((await signIn({ code: old.code })).status).toBe(401);
    const body = { name: 'gone', tenant: 'acme', scopes: ['read'] };
    const { key, id } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
    const { code } = await makeCode(key);
    await node.get('DELETE', `/v1/keys/${id}`);
    expect((await signIn({ code })).status).toBe(401);
    for (const made of ['pc_x', `pc_${'a'.repeat(51)}`])
      expect((await signIn({ code: made })).status).toBe(401);
  });

  it('is made with a key only, and a key has a few at most', async () => {
    const cookie = await sessionOf(reader.key);
    expect((await node.ask('POST', '/v1/session/codes', withCookie(cookie))).status).toBe(403);
    for (let i = 0; i < 25; i += 1) await makeCode(reader.key);
    const { rows } = await node.node.context.shards[0].pool.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM punctual.sign_in_codes WHERE key_id = '${reader.id}'`,
    );
    expect(rows[0]!.n).toBeLessThanOrEqual(20);
  });
});

it('`punctual open` prints a link that signs in, and shows the key to nobody', async () => {
  const shell = cliUnderTest({ environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: reader.key } });
  expect(await runCli(['open', '--no-browser'], shell.cli)).toBe(0);
  const link = new URL(shell.stdout().trim());
  expect(link.origin + link.pathname).toBe(`${node.url}/`);
  expect(shell.stdout() + shell.stderr()).not.toContain(reader.key);
  const code = link.hash.replace(/^#code=/, '');
  expect((await signIn({ code })).body.keyId).toBe(reader.id);
});
