import type { FastifyInstance } from 'fastify';
import { parseDuration } from '../../core/duration.js';
import type { JobPart } from '../../core/job.js';
import { Job, JobPage, LogPage, Why } from '../../core/schemas/job.js';
import { IdPath, JobListQuery, LogQuery, NoQuery, WaitQuery } from '../../core/schemas/query.js';
import {
  BulkAnswer,
  BulkSubmission,
  JobChange,
  JobSubmission,
  Redrive,
  RedriveAnswer,
} from '../../core/schemas/submission.js';
import type { Caller, JobUseCases } from '../use-cases.js';
import { callerOf } from './access.js';
import { waitedMs } from './forwarding.js';
import { expectNothing, idOf, queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

/** What a body may weigh beyond the payloads in it. */
const OVERHEAD_BYTES = 64 * 1024;

const DEFAULT_LIMIT = 100;
/** For a call that does not wait, and so cannot be cut short. */
const NEVER = new AbortController().signal;

/** Submitting, reading and steering jobs. */
export function jobRoutes(server: FastifyInstance, parts: RouteParts): void {
  submitting(server, parts);
  reading(server, parts);
  inspecting(server, parts);
  steering(server, parts);
}

function submitting(server: FastifyInstance, { useCases, limits, describe }: RouteParts): void {
  server.post(
    '/v1/jobs',
    {
      bodyLimit: limits.maxPayload + OVERHEAD_BYTES,
      config: { bodyText: 'payload' },
      schema: describe({
        id: 'submitJob',
        tag: 'jobs',
        summary: 'Submit one job. The same key again answers 200 with the job that has it.',
        body: JobSubmission,
        answers: { 201: Job, 200: Job },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      const { created, job } = await useCases.jobs.submit(callerOf(request), request.body);
      return reply
        .code(created ? 201 : 200)
        .header('location', `/v1/jobs/${job.id}`)
        .send(job);
    },
  );

  server.post(
    '/v1/jobs/bulk',
    {
      bodyLimit: limits.maxBulkBytes + OVERHEAD_BYTES,
      config: { bodyText: 'payload', bodyLists: ['jobs'] },
      schema: describe({
        id: 'submitJobs',
        tag: 'jobs',
        summary: 'Submit many jobs, all or none. The ids are in the order of the jobs.',
        body: BulkSubmission,
        answers: { 201: BulkAnswer },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      return reply.code(201).send(await useCases.jobs.submitBulk(callerOf(request), request.body));
    },
  );
}

function reading(server: FastifyInstance, { useCases, describe, longPolls }: RouteParts): void {
  server.get(
    '/v1/jobs',
    {
      schema: describe({
        id: 'listJobs',
        tag: 'jobs',
        summary:
          'List jobs, newest first. What is large is left out of them, and named in `omitted`, unless `include` asks for it.',
        query: JobListQuery,
        answers: { 200: JobPage },
      }),
    },
    async (request) => {
      const { include, limit = DEFAULT_LIMIT, ...filter } = queryOf(request, JobListQuery);
      const parts = include === undefined ? {} : { include: include.split(',') as JobPart[] };
      return useCases.jobs.list(callerOf(request), { ...filter, ...parts, limit });
    },
  );

  server.get(
    '/v1/jobs/:id',
    {
      schema: describe({
        id: 'getJob',
        tag: 'jobs',
        summary: 'Read a job. With `wait`, the answer comes when the job ends or the time is up.',
        params: IdPath,
        query: WaitQuery,
        answers: { 200: Job },
      }),
    },
    async (request, reply) => {
      const id = idOf(request);
      const waitMs = parseDuration(queryOf(request, WaitQuery).wait ?? '0s') ?? 0;
      const leftMs = Math.max(0, waitMs - waitedMs(request));
      const get = (signal: AbortSignal) => useCases.jobs.get(callerOf(request), id, leftMs, signal);
      return leftMs === 0 ? get(NEVER) : longPolls.run(reply, 'results', get);
    },
  );
}

function inspecting(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.get(
    '/v1/jobs/:id/logs',
    {
      schema: describe({
        id: 'readLogs',
        tag: 'jobs',
        summary: 'Read the log of a job.',
        params: IdPath,
        query: LogQuery,
        answers: { 200: LogPage },
      }),
    },
    async (request) => {
      const { after = 0, limit = DEFAULT_LIMIT } = queryOf(request, LogQuery);
      return useCases.jobs.logs(callerOf(request), idOf(request), after, limit);
    },
  );

  server.get(
    '/v1/jobs/:id/why',
    {
      schema: describe({
        id: 'whyJob',
        tag: 'jobs',
        summary: 'Why is it not running?',
        params: IdPath,
        answers: { 200: Why },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.jobs.why(callerOf(request), idOf(request));
    },
  );
}

type Steer = (jobs: JobUseCases, caller: Caller, id: string) => Promise<unknown>;

const STEERING: readonly (readonly [verb: string, summary: string, steer: Steer])[] = [
  ['cancel', 'Cancel a job, waiting or running.', (jobs, caller, id) => jobs.cancel(caller, id)],
  ['retry', 'Send a dead letter round again.', (jobs, caller, id) => jobs.retry(caller, id)],
  ['hold', 'Keep a job from starting.', (jobs, caller, id) => jobs.hold(caller, id)],
  ['release', 'Let a job on hold start.', (jobs, caller, id) => jobs.release(caller, id)],
];

function steering(server: FastifyInstance, { useCases, limits, describe }: RouteParts): void {
  server.patch(
    '/v1/jobs/:id',
    {
      bodyLimit: limits.maxPayload + OVERHEAD_BYTES,
      config: { bodyText: 'payload' },
      schema: describe({
        id: 'changeJob',
        tag: 'jobs',
        summary: 'Change a job that has not started.',
        params: IdPath,
        body: JobChange,
        answers: { 200: Job },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.jobs.change(callerOf(request), idOf(request), request.body);
    },
  );

  server.post(
    '/v1/jobs/redrive',
    {
      schema: describe({
        id: 'redriveJobs',
        tag: 'jobs',
        summary: 'Send many dead letters round again, or count them with `dryRun`.',
        body: Redrive,
        answers: { 200: RedriveAnswer },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.jobs.redrive(callerOf(request), request.body);
    },
  );

  for (const [verb, summary, steer] of STEERING) {
    server.post(
      `/v1/jobs/:id/${verb}`,
      { schema: describe({ id: `${verb}Job`, tag: 'jobs', summary, params: IdPath, answers: { 200: Job } }) },
      async (request) => {
        queryOf(request, NoQuery);
        expectNothing(request);
        return steer(useCases.jobs, callerOf(request), idOf(request));
      },
    );
  }
}
