import type { FastifyInstance } from 'fastify';
import { IdPath, NoQuery, ShortListQuery } from '../../core/schemas/query.js';
import {
  ClaimAnswer,
  ClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  Leave,
  ReportAnswer,
  ReportRequest,
  WorkerPage,
  WorkerRegistration,
  WorkerView,
  WorkerWelcome,
} from '../../core/schemas/worker.js';
import type { ClaimAnswer as Claimed } from '../../core/wire.js';
import { OwnAssignment } from '../../dispatch/assignment.js';
import { callerOf } from './access.js';
import { waitedMs } from './forwarding.js';
import { expectNothing, idOf, queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

const OVERHEAD_BYTES = 64 * 1024;
const DEFAULT_LIMIT = 1_000;
/** A leader keeps what its workers say about themselves in memory, and in lists they stand side by side. */
const MAX_REGISTRATION_BYTES = 256 * 1024;

/** What workers say to the scheduler, and what people see and ask of workers. */
export function workerRoutes(server: FastifyInstance, parts: RouteParts): void {
  sessions(server, parts);
  work(server, parts);
  seeing(server, parts);
}

function sessions(server: FastifyInstance, { useCases, limits, describe }: RouteParts): void {
  server.post(
    '/v1/workers',
    {
      bodyLimit: MAX_REGISTRATION_BYTES,
      schema: describe({
        id: 'registerWorker',
        tag: 'workers',
        summary: "Open a worker's session with a shard's leader.",
        body: WorkerRegistration,
        answers: { 201: WorkerWelcome },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      return reply.code(201).send(await useCases.workers.register(callerOf(request), request.body));
    },
  );

  server.post(
    '/v1/workers/:id/heartbeat',
    {
      bodyLimit: limits.maxBulkBytes,
      config: { bodyLists: ['running', 'refused'] },
      schema: describe({
        id: 'sendHeartbeat',
        tag: 'workers',
        summary: 'Say that the worker lives and what it holds. 404: register again.',
        params: IdPath,
        body: Heartbeat,
        answers: { 200: HeartbeatAnswer },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.workers.heartbeat(callerOf(request), idOf(request), request.body);
    },
  );

  server.delete(
    '/v1/workers/:id',
    {
      schema: describe({
        id: 'leaveWorker',
        tag: 'workers',
        summary:
          "End a worker's session. What it was handed and has not reported is lost, unless it says otherwise.",
        params: IdPath,
        body: Leave,
        answers: { 204: 'The session is over.' },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      await useCases.workers.leave(callerOf(request), idOf(request), request.body);
      return reply.code(204).send();
    },
  );
}

function work(server: FastifyInstance, { useCases, limits, describe, longPolls }: RouteParts): void {
  server.post(
    '/v1/workers/:id/claim',
    {
      // What was claimed for an answer that got lost is offered again.
      config: { repeatable: true },
      schema: describe({
        id: 'claimJobs',
        tag: 'workers',
        summary: 'Take jobs; waits until there are some or the time is up.',
        params: IdPath,
        body: ClaimRequest,
        answers: { 200: ClaimAnswer },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      const id = idOf(request);
      const answer = await longPolls.run(reply, 'work', (signal) =>
        useCases.workers.claim(callerOf(request), id, request.body, signal, waitedMs(request)),
      );
      return reply.type('application/json; charset=utf-8').serializer(asItIs).send(claimText(answer));
    },
  );

  server.post(
    '/v1/workers/:id/report',
    {
      // A result that is on record is accepted again.
      config: { repeatable: true, bodyText: 'result', bodyLists: ['results'] },
      bodyLimit: limits.maxBulkBytes + OVERHEAD_BYTES,
      schema: describe({
        id: 'reportResults',
        tag: 'workers',
        summary: 'Report the results of attempts, at most one per job.',
        params: IdPath,
        body: ReportRequest,
        answers: { 200: ReportAnswer },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.workers.report(callerOf(request), idOf(request), request.body);
    },
  );
}

function seeing(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.get(
    '/v1/workers',
    {
      schema: describe({
        id: 'listWorkers',
        tag: 'workers',
        summary: 'List the workers, newest first.',
        query: ShortListQuery,
        answers: { 200: WorkerPage },
      }),
    },
    async (request) => {
      const { limit = DEFAULT_LIMIT, ...filter } = queryOf(request, ShortListQuery);
      return useCases.workers.list(callerOf(request), { ...filter, limit });
    },
  );

  server.get(
    '/v1/workers/:id',
    {
      schema: describe({
        id: 'getWorker',
        tag: 'workers',
        summary: 'Read a worker.',
        params: IdPath,
        answers: { 200: WorkerView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.workers.get(callerOf(request), idOf(request));
    },
  );

  server.post(
    '/v1/workers/:id/drain',
    {
      schema: describe({
        id: 'drainWorker',
        tag: 'workers',
        summary: 'Ask a worker to stop taking work, finish and leave.',
        params: IdPath,
        answers: { 200: WorkerView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      expectNothing(request);
      return useCases.workers.drain(callerOf(request), idOf(request));
    },
  );
}

const asItIs = (text: unknown) => text as string;

/** The answer as JSON. Stored payloads are JSON already; parsing them only to write them again would cost the most. */
function claimText({ epoch, jobs, stop }: Claimed): string {
  const texts = jobs.map((job) => (job instanceof OwnAssignment ? job.text : JSON.stringify(job)));
  const stopText = stop === undefined ? '' : `,"stop":${JSON.stringify(stop)}`;
  return `{"epoch":${epoch},"jobs":[${texts.join(',')}]${stopText}}`;
}
