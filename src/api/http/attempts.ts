import type { FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import { Completion, Failure, LogReport, ProgressReport } from '../../core/schemas/attempt.js';
import { IdPath, NoQuery } from '../../core/schemas/query.js';
import type { AttemptCredential, AttemptUseCases, Caller } from '../use-cases.js';
import { reporterOf } from './access.js';
import { idOf, queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

/** A report holds one result, one error or some lines of a log; the use-cases cut what is too long. */
const REPORT_BYTES = 1024 * 1024 + 64 * 1024;

interface ReportRoute {
  readonly verb: string;
  readonly id: string;
  readonly summary: string;
  readonly body: TSchema;
  report(
    attempts: AttemptUseCases,
    by: Caller | AttemptCredential,
    jobId: string,
    body: unknown,
  ): Promise<void>;
}

const ROUTES: readonly ReportRoute[] = [
  {
    verb: 'complete',
    id: 'completeAttempt',
    summary: 'Report that an attempt succeeded. An old fence is a 409 and changes nothing.',
    body: Completion,
    report: (attempts, by, jobId, body) => attempts.complete(by, jobId, body),
  },
  {
    verb: 'fail',
    id: 'failAttempt',
    summary: 'Report that an attempt failed. An old fence is a 409 and changes nothing.',
    body: Failure,
    report: (attempts, by, jobId, body) => attempts.fail(by, jobId, body),
  },
  {
    verb: 'progress',
    id: 'reportProgress',
    summary: 'Report how far a running attempt has come.',
    body: ProgressReport,
    report: (attempts, by, jobId, body) => attempts.progress(by, jobId, body),
  },
  {
    verb: 'logs',
    id: 'appendLogs',
    summary: 'Append lines to the log of a running attempt.',
    body: LogReport,
    report: (attempts, by, jobId, body) => attempts.log(by, jobId, body),
  },
];

/** Reports about one attempt, by a key or by the attempt's token. All answer 204. */
export function attemptRoutes(server: FastifyInstance, { useCases, limits, describe }: RouteParts): void {
  for (const { verb, id, summary, body, report } of ROUTES) {
    server.post(
      `/v1/jobs/:id/${verb}`,
      {
        bodyLimit: Math.max(REPORT_BYTES, limits.maxPayload + 64 * 1024),
        config: {
          access: 'attempt',
          ...(verb === 'logs' ? { bodyLists: ['lines'] } : { bodyText: 'result' }),
        },
        schema: describe({
          id,
          tag: 'attempts',
          summary,
          access: 'attempt',
          params: IdPath,
          body,
          answers: { 204: 'The report was accepted.' },
        }),
      },
      async (request, reply) => {
        queryOf(request, NoQuery);
        await report(useCases.attempts, reporterOf(request), idOf(request), request.body);
        return reply.code(204).send();
      },
    );
  }
}
