import type { FastifyInstance } from 'fastify';
import { Job } from '../../core/schemas/job.js';
import { LedgerQuery, NamePath, NoQuery, ScheduleListQuery } from '../../core/schemas/query.js';
import {
  BackfillAnswer,
  BackfillRequest,
  OccurrencePage,
  PreviewAnswer,
  PreviewRequest,
  ScheduleChange,
  ScheduleInput,
  SchedulePage,
  ScheduleView,
} from '../../core/schemas/schedule.js';
import { callerOf } from './access.js';
import { expectNothing, nameOf, queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

/** What a body may weigh beyond the payload in it. */
const OVERHEAD_BYTES = 64 * 1024;
const DEFAULT_LIMIT = 100;

/** Making, reading and steering schedules. */
export function scheduleRoutes(server: FastifyInstance, parts: RouteParts): void {
  making(server, parts);
  reading(server, parts);
  steering(server, parts);
  running(server, parts);
}

function making(server: FastifyInstance, { useCases, limits, describe }: RouteParts): void {
  server.post(
    '/v1/schedules',
    {
      bodyLimit: limits.maxPayload + OVERHEAD_BYTES,
      schema: describe({
        id: 'createSchedule',
        tag: 'schedules',
        summary: 'Make a schedule. A name that is taken: 409.',
        body: ScheduleInput,
        answers: { 201: ScheduleView },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      const { name, schedule } = await useCases.schedules.create(callerOf(request), request.body);
      return reply
        .code(201)
        .header('location', `/v1/schedules/${encodeURIComponent(name)}`)
        .send(schedule);
    },
  );

  server.patch(
    '/v1/schedules/:name',
    {
      bodyLimit: limits.maxPayload + OVERHEAD_BYTES,
      schema: describe({
        id: 'changeSchedule',
        tag: 'schedules',
        summary: 'Change a schedule from its next occurrence on; null takes a field back to its default.',
        params: NamePath,
        body: ScheduleChange,
        answers: { 200: ScheduleView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.schedules.change(callerOf(request), nameOf(request), request.body);
    },
  );

  server.delete(
    '/v1/schedules/:name',
    {
      schema: describe({
        id: 'deleteSchedule',
        tag: 'schedules',
        summary: 'Delete a schedule. Jobs that have started go on, and its ledger stays.',
        params: NamePath,
        answers: { 204: 'The schedule is gone.' },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      expectNothing(request);
      await useCases.schedules.remove(callerOf(request), nameOf(request));
      return reply.code(204).send();
    },
  );
}

function reading(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.get(
    '/v1/schedules',
    {
      schema: describe({
        id: 'listSchedules',
        tag: 'schedules',
        summary: 'List schedules by name.',
        query: ScheduleListQuery,
        answers: { 200: SchedulePage },
      }),
    },
    async (request) => {
      const { include, limit = DEFAULT_LIMIT, ...filter } = queryOf(request, ScheduleListQuery);
      const parts = include === undefined ? {} : { include: ['payload' as const] };
      return useCases.schedules.list(callerOf(request), { ...filter, ...parts, limit });
    },
  );

  server.get(
    '/v1/schedules/:name',
    {
      schema: describe({
        id: 'getSchedule',
        tag: 'schedules',
        summary: 'Read a schedule.',
        params: NamePath,
        answers: { 200: ScheduleView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.schedules.get(callerOf(request), nameOf(request));
    },
  );

  server.get(
    '/v1/schedules/:name/occurrences',
    {
      schema: describe({
        id: 'listOccurrences',
        tag: 'schedules',
        summary: 'Read the ledger of a schedule, newest first. It outlives the schedule.',
        params: NamePath,
        query: LedgerQuery,
        answers: { 200: OccurrencePage },
      }),
    },
    async (request) => {
      const { limit = DEFAULT_LIMIT, ...filter } = queryOf(request, LedgerQuery);
      return useCases.schedules.occurrences(callerOf(request), nameOf(request), { ...filter, limit });
    },
  );

  server.post(
    '/v1/schedules/preview',
    {
      schema: describe({
        id: 'previewSchedule',
        tag: 'schedules',
        summary: 'The next moments of an expression, without making a schedule.',
        body: PreviewRequest,
        answers: { 200: PreviewAnswer },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.schedules.preview(callerOf(request), request.body);
    },
  );
}

const STEERING = [
  ['pause', 'Skip the occurrences of a schedule until it is resumed.'],
  ['resume', 'Go on with the next occurrence.'],
] as const;

function steering(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  for (const [verb, summary] of STEERING) {
    server.post(
      `/v1/schedules/:name/${verb}`,
      {
        schema: describe({
          id: `${verb}Schedule`,
          tag: 'schedules',
          summary: `${summary} Already so: 409.`,
          params: NamePath,
          answers: { 200: ScheduleView },
        }),
      },
      async (request) => {
        queryOf(request, NoQuery);
        expectNothing(request);
        return useCases.schedules[verb](callerOf(request), nameOf(request));
      },
    );
  }
}

function running(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.post(
    '/v1/schedules/:name/run',
    {
      schema: describe({
        id: 'runSchedule',
        tag: 'schedules',
        summary: 'Make a job of the schedule now, beside its timetable.',
        params: NamePath,
        answers: { 201: Job },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      expectNothing(request);
      const job = await useCases.schedules.run(callerOf(request), nameOf(request));
      return reply.code(201).header('location', `/v1/jobs/${job.id}`).send(job);
    },
  );

  server.post(
    '/v1/schedules/:name/backfill',
    {
      schema: describe({
        id: 'backfillSchedule',
        tag: 'schedules',
        summary: 'Run the occurrences of a past time that have no run on record.',
        params: NamePath,
        body: BackfillRequest,
        answers: { 200: BackfillAnswer },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.schedules.backfill(callerOf(request), nameOf(request), request.body);
    },
  );
}
