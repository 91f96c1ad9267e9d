import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import Type from 'typebox';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { Happening } from '../../../test/happening.js';
import { PunctualError } from '../../core/errors.js';
import { defaulted, strict } from '../../core/schemas/object.js';
import { VERSION } from '../../core/version.js';
import { type AnswerStream, type Route, route, stream } from '../route.js';
import { apiDocument } from './api-document.js';
import { OPERATOR_KEY, recordingRoutes, serverOptions } from './routes.fixture.js';
import { createHttpServer } from './server.js';

/** What no route of the product needs yet, or none shows by itself: bodies and answers that stream, defaults of a query. */

const HEADERS = { authorization: `Bearer ${OPERATOR_KEY}` };

function serverOf(routes: readonly Route[]) {
  const logged: object[] = [];
  const log = { error: (fields: object) => void logged.push(fields) };
  const server = createHttpServer({ ...serverOptions(recordingRoutes()), routes, log });
  onTestFinished(() => server.close());
  return { server, logged };
}

const upload = route({
  id: 'upload',
  method: 'PUT',
  path: '/v1/blobs/:name',
  tag: 'jobs',
  summary: 'Takes bytes.',
  scope: 'submit',
  params: strict({ name: Type.String() }),
  body: stream('application/octet-stream', 200_000),
  answers: { 201: Type.Object({ bytes: Type.Integer(), pieces: Type.Integer() }) },
  run: async ({ body }) => {
    let bytes = 0;
    let pieces = 0;
    for await (const piece of body) {
      bytes += piece.length;
      pieces += 1;
    }
    return { bytes, pieces };
  },
});

const put = (body: Buffer | string, type = 'application/octet-stream') => ({
  method: 'PUT' as const,
  url: '/v1/blobs/a',
  headers: { ...HEADERS, 'content-type': type },
  payload: body,
});

it('a body that streams is read piece by piece, whatever is in it', async () => {
  const { server } = serverOf([upload]);
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const answer = await request(`http://127.0.0.1:${port}/v1/blobs/a`, {
    method: 'PUT',
    headers: { ...HEADERS, 'content-type': 'application/octet-stream' },
    body: Buffer.alloc(200_000, 0xff),
  });
  expect(answer.statusCode).toBe(201);
  const { bytes, pieces } = (await answer.body.json()) as { bytes: number; pieces: number };
  expect(bytes).toBe(200_000);
  expect(pieces).toBeGreaterThan(1);
});

it.each<[string, ReturnType<typeof put>, number, string]>([
  ['too large', put(Buffer.alloc(200_001)), 413, 'BODY_TOO_LARGE'],
  ['of another type', put('x', 'text/plain'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['JSON', put('{}', 'application/json'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
])('a body that streams is refused unread when it is %s', async (_, bad, status, code) => {
  const { server } = serverOf([upload]);
  const answer = await server.inject(bad);
  expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
});

it('a body that streams and does not say how long it is fails when it becomes too long', async () => {
  const { server } = serverOf([upload]);
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const pieces = async function* () {
    for (let i = 0; i < 5; i++) yield Buffer.alloc(50_000);
  };
  const answer = await request(`http://127.0.0.1:${port}/v1/blobs/a`, {
    method: 'PUT',
    headers: { ...HEADERS, 'content-type': 'application/octet-stream' },
    body: Readable.from(pieces()),
  });
  expect([answer.statusCode, await answer.body.json()]).toMatchObject([413, { code: 'BODY_TOO_LARGE' }]);
});

it('the document tells of bodies and answers that stream', async () => {
  const { paths } = await apiDocument([upload, following(async () => undefined)], VERSION);
  expect(paths).toMatchObject({
    '/v1/blobs/{name}': { put: { requestBody: { content: { 'application/octet-stream': {} } } } },
    '/v1/news': { get: { responses: { 200: { content: { 'text/event-stream': {} } } } } },
  });
});

function following(tell: (stream: AnswerStream) => Promise<void>): Route {
  return route({
    id: 'follow',
    method: 'GET',
    path: '/v1/news',
    tag: 'jobs',
    summary: 'Tells what happens.',
    scope: 'read',
    answers: { 200: { kind: 'stream', type: 'text/event-stream', description: 'Events.' } },
    run: ({ call }) => call.stream('results', tell),
  });
}

async function listenTo(tell: (stream: AnswerStream) => Promise<void>) {
  const { server, logged } = serverOf([following(tell)]);
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const leave = new AbortController();
  const answer = await request(`http://127.0.0.1:${port}/v1/news`, {
    headers: HEADERS,
    signal: leave.signal,
  });
  return { server, logged, answer, leave };
}

const untilGone = ({ gone }: AnswerStream) => (gone.aborted ? undefined : once(gone, 'abort'));

it('an answer that streams arrives as it is told', async () => {
  const goOn = new Happening<void>();
  const { answer } = await listenTo(async (stream) => {
    await stream.write('data: 1\n\n');
    await goOn.times(1);
    await stream.write('data: 2\n\n');
  });
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/event-stream']);
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
  const pieces: string[] = [];
  for await (const piece of answer.body) {
    pieces.push(String(piece));
    goOn.happen();
  }
  expect(pieces).toEqual(['data: 1\n\n', 'data: 2\n\n']);
});

it('an answer that streams ends when the server closes, and is given up when its client leaves', async () => {
  const closing = await listenTo(async (stream) => {
    await stream.write('here\n');
    await untilGone(stream);
  });
  await closing.server.close();
  expect(await closing.answer.body.text()).toBe('here\n');

  const gaveUp = new Happening<void>();
  const leaving = await listenTo(async (stream) => {
    stream.open();
    await untilGone(stream);
    gaveUp.happen();
  });
  leaving.leave.abort();
  await expect(leaving.answer.body.text()).rejects.toThrow();
  await gaveUp.times(1);
});

it('an answer that streams waits for a client that reads slowly', async () => {
  let full = 0;
  const { answer } = await listenTo(async (stream) => {
    for (let i = 0; i < 200; i++) {
      const room = stream.write('x'.repeat(100_000));
      if (room !== undefined) full += 1;
      await room;
    }
  });
  expect((await answer.body.text()).length).toBe(20_000_000);
  expect(full).toBeGreaterThan(0);
});

it('a client that does not read cannot keep the server from closing', async () => {
  const full = new Happening<void>();
  const { server } = await listenTo(async (stream) => {
    // More than the buffers of the system hold, so that it never drains.
    let room = stream.write('x');
    while (stream.unsent < 32_000_000) room = stream.write('x'.repeat(1_000_000));
    full.happen();
    await room;
  });
  await full.times(1);
  await server.close();
});

it('what goes wrong before an answer streams is answered; afterwards it breaks off, and is logged', async () => {
  const early = await listenTo(async () => {
    throw new PunctualError('JOB_NOT_FOUND', 'There is no such job.');
  });
  expect([early.answer.statusCode, await early.answer.body.json()]).toMatchObject([
    404,
    { code: 'JOB_NOT_FOUND' },
  ]);
  const late = await listenTo(async (stream) => {
    stream.open();
    throw new Error('broken');
  });
  await expect(late.answer.body.text()).rejects.toThrow();
  expect(late.logged).toMatchObject([{ err: { message: 'broken' } }]);
});

it('a query that must say something is not left out', async () => {
  const { server } = serverOf([
    route({
      id: 'find',
      method: 'GET',
      path: '/v1/things',
      tag: 'jobs',
      summary: 'Finds things.',
      scope: 'read',
      query: strict({ text: Type.String() }),
      answers: { 200: Type.Object({}) },
      run: ({ query }) => query,
    }),
  ]);
  const answer = await server.inject({ url: '/v1/things', headers: HEADERS });
  expect([answer.statusCode, answer.json().errors[0].pointer]).toEqual([422, '/text']);
});

it('what a query leaves out has the default of its schema', async () => {
  const { server } = serverOf([
    route({
      id: 'list',
      method: 'GET',
      path: '/v1/things',
      tag: 'jobs',
      summary: 'Lists things.',
      scope: 'read',
      query: strict({ limit: defaulted(Type.Integer({ default: 7 })), after: Type.Optional(Type.String()) }),
      answers: { 200: Type.Object({}) },
      run: ({ query }) => ({ ...query, twice: query.limit * 2 }),
    }),
  ]);
  const get = async (url: string) => (await server.inject({ url, headers: HEADERS })).json();
  expect(await get('/v1/things')).toEqual({ limit: 7, twice: 14 });
  expect(await get('/v1/things?after=3')).toEqual({ limit: 7, twice: 14, after: '3' });
  expect(await get('/v1/things?limit=4')).toEqual({ limit: 4, twice: 8 });
});
