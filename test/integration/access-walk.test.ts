import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/api/routes.js';
import { KEY_SCOPES, type KeyScope, type NewKeyView } from '../../src/core/access.js';
import type { ArtifactView } from '../../src/core/artifact.js';
import type { Job } from '../../src/core/job.js';
import type { NewSigningSecret } from '../../src/core/secret.js';
import { makeMasterKey } from '../../src/core/secret-box.js';
import { signAttemptToken } from '../../src/core/tokens.js';
import { uuidv7 } from '../../src/core/uuid.js';
import type { WorkerWelcome } from '../../src/core/wire.js';
import type { Workflow } from '../../src/core/workflow.js';
import { addKey, hashKey, makeKey } from '../../src/store/api-keys.js';
import { TestNode } from '../node-for-tests.js';

/**
 * Every route of the served OpenAPI document, called by everybody over HTTP. What must come of it follows from the scope
 * that the route declares, so a new route is covered without a line here, and one without a declaration fails.
 */

interface Operation {
  readonly operationId: string;
  readonly 'x-scope'?: string;
  readonly security?: readonly Record<string, unknown>[];
}

interface Called {
  readonly id: string;
  readonly method: string;
  /** With `{id}` or `{name}`. */
  readonly path: string;
  readonly scope: string;
}

/** The scopes of routes that a key with a scope satisfies. */
const SATISFIED: Record<KeyScope, readonly string[]> = {
  read: ['key', 'read'],
  submit: ['key', 'submit'],
  work: ['key', 'work', 'attempt', 'step'],
  admin: ['key', 'admin', 'read'],
};

const TENANTS = ['acme', 'globex'] as const;
type Tenant = (typeof TENANTS)[number];

/** What a tenant has, by the noun of a path. */
interface Things {
  readonly job: string;
  readonly worker: string;
  readonly key: string;
  readonly queue: string;
  readonly schedule: string;
  readonly task: string;
  readonly artifact: string;
  readonly secret: string;
  readonly signingSecret: string;
  readonly workflow: string;
  readonly tenant: string;
}

let node: TestNode;
let operations: Called[];
const keys = new Map<string, string>();
const things = new Map<Tenant, Things>();
let attempt: string;

beforeAll(async () => {
  node = await TestNode.start({ settings: { secretKey: makeMasterKey() } });
  const { paths } = await node.get<{ paths: Record<string, Record<string, Operation>> }>(
    'GET',
    '/openapi.json',
  );
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      scope: operation['x-scope'] ?? 'undeclared',
    })),
  );
  for (const { id, method, path, scope, tag } of ROUTES) {
    if (tag === 'internal') operations.push({ id, method, path: path.replace(/:(\w+)/g, '{$1}'), scope });
  }
  const reader = { name: 'reader', operator: true, scopes: ['read'] };
  keys.set('operator read', (await node.get<NewKeyView>('POST', '/v1/keys', { body: reader })).key);
  const { secret, shards } = node.node.context;
  for (const tenant of TENANTS) {
    for (const scope of KEY_SCOPES) {
      const body = { name: scope, tenant, scopes: [scope] };
      keys.set(`${tenant} ${scope}`, (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key);
    }
    things.set(tenant, await populate(tenant));
    const rights = { tenant, scopes: KEY_SCOPES, queues: null, tasks: null, createdBy: null };
    const now = Date.now();
    for (const [name, expiresAt] of [
      ['expired', now - 1_000],
      ['revoked', null],
    ] as const) {
      const key = makeKey(secret, false);
      const id = uuidv7(now);
      await addKey(shards[0].pool, { id, name, hash: hashKey(secret, key), ...rights, expiresAt }, now);
      if (name === 'revoked') await node.get('DELETE', `/v1/keys/${id}`);
      keys.set(`${tenant} ${name}`, key);
    }
  }
  const jobId = things.get('acme')!.job;
  attempt = signAttemptToken(secret, { tenant: 'acme', jobId, fence: 7 }, Date.now() + 3_600_000, Date.now());
}, 60_000);
afterAll(() => node.stop());

async function populate(tenant: Tenant): Promise<Things> {
  const body = { task: `task-of-${tenant}`, queue: `queue-of-${tenant}`, key: 'the-same', delay: '1h' };
  const job = await node.get<Job>('POST', '/v1/jobs', { tenant, body });
  const registration = {
    ...{ name: tenant, queues: ['default'], slots: 1, targets: ['handler'], tasks: ['t'], labels: {} },
  };
  const { workerId } = await node.get<WorkerWelcome>('POST', '/v1/workers', { tenant, body: registration });
  const schedule = `schedule-of-${tenant}`;
  await node.get('POST', '/v1/schedules', { tenant, body: { name: schedule, task: 't', every: '1d' } });
  await node.get('PATCH', `/v1/queues/queue-of-${tenant}`, { tenant, body: { weight: 2 } });
  const made = await node.get<NewKeyView>('POST', '/v1/keys', {
    body: { name: 'k', tenant, scopes: ['read'] },
  });
  const task = `definition-of-${tenant}`;
  await node.get('POST', '/v1/tasks', { tenant, body: { name: task, priority: 4 } });
  const workflow = await node.get<Workflow>('POST', '/v1/workflows', {
    tenant,
    body: {
      name: 'w',
      key: 'the-same',
      jobs: { a: { task: 't', delay: '1h' }, b: { task: 't', after: ['a'] } },
    },
  });
  const secret = `secret-of-${tenant}`;
  const value = { value: 'v', origins: ['https://a.example'] };
  await node.get('PUT', `/v1/secrets/${secret}`, { tenant, body: value });
  const announced = { name: `program-of-${tenant}`, version: '1', size: 10, sha256: 'a'.repeat(64) };
  const artifact = await node.get<ArtifactView>('POST', '/v1/artifacts', { tenant, body: announced });
  const signing = await node.get<NewSigningSecret>('POST', '/v1/signing-secrets', { tenant });
  await node.get('POST', '/v1/tenants', { body: { id: tenant } });
  const queue = `queue-of-${tenant}`;
  return {
    job: job.id,
    worker: workerId,
    key: made.id,
    queue,
    schedule,
    task,
    artifact: artifact.id,
    secret,
    signingSecret: signing.id,
    tenant,
    workflow: workflow.id,
  };
}

/** The path of a route about something of a tenant; null if the route is about nothing that tenants have. */
function pathAbout({ path }: Called, of: Things): string | null {
  const noun = path.split('/')[2];
  const kept = { secrets: of.secret, 'signing-secrets': of.signingSecret, artifacts: of.artifact };
  const named = { ...kept, queues: of.queue, schedules: of.schedule, tasks: of.task, tenants: of.tenant };
  const thing = { workflows: of.workflow, jobs: of.job, workers: of.worker, keys: of.key, ...named }[noun!];
  return thing !== undefined && /\{(id|name)\}/.test(path) ? path.replace(/\{\w+\}/, thing) : null;
}

const NOBODYS: Things = {
  job: '0198c0de-0000-7000-8000-00000000beef',
  worker: '0198c0de-0000-7000-8000-00000000beef',
  key: '0198c0de-0000-7000-8000-00000000beef',
  queue: 'queue-of-nobody',
  schedule: 'schedule-of-nobody',
  task: 'definition-of-nobody',
  artifact: '0198c0de-0000-7000-8000-00000000beef',
  secret: 'secret-of-nobody',
  signingSecret: '0198c0de-0000-7000-8000-00000000beef',
  workflow: '0198c0de-0000-7000-8000-00000000beef',
  tenant: 'nobody',
};

/** A path that is about nothing that exists. */
const emptyPath = (called: Called) =>
  pathAbout(called, NOBODYS) ?? called.path.replace(/\{\w+\}/, NOBODYS.job);

/** Marks a credential that is the cookie of a session, and no key. */
const COOKIE = 'cookie ';

/** A credential as a request brings it. */
const credential = (key: string | null) =>
  key?.startsWith(COOKIE)
    ? { key: null, headers: { ...OWN_PAGE, cookie: key.slice(COOKIE.length) } }
    : { key };

const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'punctual-dashboard': '1' };

/** Signs in as a browser does. */
async function sessionOf(key: string): Promise<string> {
  const { headers } = await node.ask('POST', '/v1/session', { key: null, body: { key }, headers: OWN_PAGE });
  return COOKIE + headers.get('set-cookie')!.split(';')[0]!;
}

async function call(called: Called, path: string, key: string | null, body?: unknown) {
  const { status, body: answer } = await node.ask<{ code?: string; detail?: string } | string>(
    called.method,
    path,
    {
      ...credential(key),
      ...(body !== undefined && { body }),
    },
  );
  return { status, code: typeof answer === 'string' ? undefined : answer?.code, answer };
}

/** Calls whatever the route is with a body that no route accepts, so that nothing happens where access is granted. */
const refused = (called: Called, key: string | null) =>
  call(
    called,
    emptyPath(called) + (isStream(called) ? '?type=no-such-type' : ''),
    key,
    called.method === 'GET' ? undefined : { 'no such field': 1 },
  );

/** Whether a route answers for as long as somebody listens. */
const isStream = ({ id }: Called) => id === 'listenToEvents';

const granted = ({ status, code }: { status: number; code?: string | undefined }) =>
  status !== 401 && !(status === 403 && code === 'FORBIDDEN');

it('every route of the document declares a scope, and every declared route is in the document', () => {
  const known = ['public', 'key', 'read', 'submit', 'work', 'admin', 'operator', 'attempt', 'step', 'node'];
  expect(operations.filter(({ scope }) => !known.includes(scope))).toEqual([]);
  const documented = new Set(operations.map(({ id }) => id));
  expect(ROUTES.filter(({ id }) => !documented.has(id)).map(({ id }) => id)).toEqual([]);
  expect(operations.length).toBeGreaterThan(60);
});

/** What each route answers to a credential, against what its scope says. */
async function walk(key: string | null, isGranted: (scope: string) => boolean, status: 401 | 403) {
  const expected: unknown[] = [];
  const found: unknown[] = [];
  for (const called of operations) {
    const answer = await refused(called, key);
    const yes = called.scope === 'public' || isGranted(called.scope);
    expected.push([called.id, yes ? 'granted' : status]);
    found.push([called.id, granted(answer) ? 'granted' : answer.status]);
  }
  expect(found).toEqual(expected);
}

describe('access', () => {
  it('without a key is to what is public', () => walk(null, () => false, 401), 60_000);

  it(
    'with the key of an operator is to everything but what nodes say to each other',
    () => walk(node.apiKey, (scope) => scope !== 'node', 403),
    60_000,
  );

  it(
    'with a read-only key of an operator is to what may be read',
    () => walk(keys.get('operator read')!, (scope) => scope === 'read' || scope === 'key', 403),
    60_000,
  );

  it.each(TENANTS.flatMap((tenant) => KEY_SCOPES.map((scope) => [tenant, scope] as const)))(
    'with a key of %s is to what its scope says: %s',
    (tenant, scope) => walk(keys.get(`${tenant} ${scope}`)!, (each) => SATISFIED[scope].includes(each), 403),
    60_000,
  );

  it('with the session of a browser is to what its key may do', async () => {
    await walk(await sessionOf(node.apiKey), (scope) => scope !== 'node', 403);
    const admin = await sessionOf(keys.get('acme admin')!);
    await walk(admin, (scope) => SATISFIED.admin.includes(scope), 403);
  }, 60_000);

  it.each(TENANTS.flatMap((tenant) => ['expired', 'revoked'].map((how) => [tenant, how] as const)))(
    'with a key of %s that is %s is to what is public',
    (tenant, how) => walk(keys.get(`${tenant} ${how}`)!, () => false, 401),
    60_000,
  );

  it('with the token of an attempt is to reports about its own job', async () => {
    await walk(attempt, (scope) => scope === 'step', 403);
    const own = things.get('acme')!;
    for (const called of operations) {
      const path = pathAbout(called, own);
      if (path === null || called.scope === 'public') continue;
      const body = called.method === 'GET' ? undefined : { 'no such field': 1 };
      expect([called.id, granted(await call(called, path, attempt, body))]).toEqual([
        called.id,
        called.scope === 'attempt' || called.scope === 'step',
      ]);
    }
  }, 60_000);
});

/** Bodies that the routes about one thing accept. */
const BODIES: Record<string, unknown> = {
  sendHeartbeat: { epoch: 1, running: [] },
  claimJobs: { max: 1, wait: '0s' },
  reportResults: { results: [] },
  resolveSecrets: { jobId: '0198c0de-0000-7000-8000-00000000cafe', fence: 1, token: 'none', names: [] },
  resolveArtifact: { jobId: '0198c0de-0000-7000-8000-00000000cafe', fence: 1, token: 'none' },
  putSecret: { value: 'v', origins: ['https://a.example'] },
  changeJob: { priority: 3 },
  completeAttempt: { fence: 1 },
  failAttempt: { fence: 1, error: { message: 'no' } },
  reportProgress: { fence: 1, progress: 0.5 },
  appendLogs: { fence: 1, lines: [] },
  addSteps: { by: { jobId: '0198c0de-0000-7000-8000-00000000cafe', fence: 1 }, jobs: { a: { task: 't' } } },
  changeSchedule: { every: '2d' },
  changeTask: { priority: 3 },
  backfillSchedule: { from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:01Z' },
};

/** Routes that make what they name, and those that answer the same about what is not there. */
const MAKES_IT = ['changeQueue', 'pauseQueue', 'resumeQueue', 'putSecret'];

describe.each([
  ['acme', 'globex'],
  ['globex', 'acme'],
] as const)('for %s, what %s has', (tenant, other) => {
  it('is as if it did not exist, by id or by name', async () => {
    const theirs = things.get(other)!;
    let looked = 0;
    for (const called of operations) {
      const path = pathAbout(called, theirs);
      if (path === null || MAKES_IT.includes(called.id)) continue;
      const scope = KEY_SCOPES.find((each) => SATISFIED[each].includes(called.scope));
      if (!scope) continue;
      const key = keys.get(`${tenant} ${scope}`)!;
      const [about, empty] = [
        await call(called, path, key, BODIES[called.id]),
        await call(called, pathAbout(called, NOBODYS)!, key, BODIES[called.id]),
      ];
      const plain = ({ status, code, answer }: typeof about, things: Things) => {
        let text = JSON.stringify(answer, (name, value) =>
          name === 'instance' || name === 'requestId' ? '' : value,
        );
        for (const id of Object.values(things)) text = text.replaceAll(id, 'X');
        return [called.id, status, code, text];
      };
      expect(plain(about, theirs)).toEqual(plain(empty, NOBODYS));
      looked += 1;
    }
    expect(looked).toBeGreaterThan(25);
  }, 60_000);

  it('is in no list, not behind a cursor, and not behind a key of a job', async () => {
    const theirs = things.get(other)!;
    const lists = operations.filter(
      (called) =>
        called.method === 'GET' &&
        !called.path.includes('{') &&
        ['read', 'admin'].includes(called.scope) &&
        !isStream(called),
    );
    const cursors = Object.values(theirs);
    for (const called of lists) {
      const key = keys.get(`${tenant} ${called.scope}`)!;
      const queries = ['', ...cursors.map((cursor) => `?after=${cursor}`), '?key=the-same'];
      for (const query of queries) {
        const kind = called.path === '/v1/ids' ? `?kind=job&prefix=${theirs.job}` : query;
        const { answer } = await call(called, called.path + kind, key);
        const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
        for (const word of [...cursors, `task-of-${other}`, `"${other}"`]) {
          // A wrong cursor may be named in the error about it.
          const isNamed = query.includes(word) || kind.includes(word);
          if (!isNamed) expect([called.id, query, text.includes(word)]).toEqual([called.id, query, false]);
        }
      }
    }
    expect(lists.length).toBeGreaterThan(8);
  }, 60_000);

  it('is still there afterwards', async () => {
    const theirs = things.get(other)!;
    const ask = { tenant: other };
    expect((await node.ask('GET', `/v1/artifacts/${theirs.artifact}`, ask)).status).toBe(200);
    expect((await node.get<Job>('GET', `/v1/jobs/${theirs.job}`, ask)).state).toBe('pending');
    expect((await node.ask('GET', `/v1/keys/${theirs.key}`, ask)).status).toBe(200);
    expect((await node.ask('GET', `/v1/schedules/${theirs.schedule}`, ask)).status).toBe(200);
  });
});
