import { PunctualError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import { DEFINITION_FIELDS, type ScheduleDefinition } from '../core/schedule-definition.js';
import type { AnyTask, TaskDefaults } from '../core/task.js';
import type { BackfillAnswer, OccurrenceView, Page, ScheduleView } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { JobHandle, type Jobs } from './job-handle.js';
import { buildSubmission, momentOf } from './task-submission.js';

/** When a task runs again; what is left out comes from the task, then from the server's defaults. */
export interface ScheduleOptions
  extends TaskDefaults,
    Pick<ScheduleDefinition, 'timezone' | 'dst' | 'catchUp' | 'overlap' | 'jitter' | 'lateAfter'> {
  /** Default: the name of the task. */
  readonly name?: string;
  /** The first moment that counts; an interval counts from here. */
  readonly startAt?: Date | string;
  /** The last moment that counts. */
  readonly endAt?: Date | string;
  /** Jobs with the same one run one after another, or as many at once as their queue allows. */
  readonly concurrencyKey?: string;
}

/** Exactly one of the ways to say when. */
export type ScheduleTiming =
  | { readonly cron: string; readonly every?: undefined; readonly at?: undefined }
  | { readonly every: string; readonly cron?: undefined; readonly at?: undefined }
  | { readonly at: Date | string; readonly cron?: undefined; readonly every?: undefined };

/** The input that every job gets, which may be left out where the task can do without. */
export type ScheduleInputOption<Input> = undefined extends Input
  ? { readonly input?: Input }
  : { readonly input: Input };

/** Which part of a ledger to read. */
export interface OccurrencesOptions {
  readonly from?: Date | string;
  readonly to?: Date | string;
  readonly limit?: number;
}

/** What is sent for a schedule: the task's defaults under the options. */
export async function buildSchedule(
  taskOrName: AnyTask | string,
  options: ScheduleOptions & ScheduleTiming & { readonly input?: unknown },
): Promise<{ name: string; definition: ScheduleDefinition }> {
  const { name, input, cron, every, at, timezone, dst, catchUp, overlap, jitter, lateAfter, ...rest } =
    options;
  const { startAt, endAt, ...job } = rest;
  const when = {
    ...{ cron, every, timezone, dst, catchUp, overlap, jitter, lateAfter },
    at: at === undefined ? undefined : momentOf(at, 'at'),
    startAt: startAt === undefined ? undefined : momentOf(startAt, 'startAt'),
    endAt: endAt === undefined ? undefined : momentOf(endAt, 'endAt'),
  };
  const given = Object.fromEntries(Object.entries(when).filter(([, value]) => value !== undefined));
  const submission = await buildSubmission(taskOrName, input, job);
  return { name: name ?? submission.task!, definition: { ...submission, ...given } as ScheduleDefinition };
}

/** Makes the schedule, or changes the one of that name into this: a program may say so at every start. */
export async function putSchedule(
  transport: Transport,
  name: string,
  definition: ScheduleDefinition,
): Promise<void> {
  try {
    await transport.request('POST', '/v1/schedules', { body: { name, ...definition }, retry: true });
  } catch (error) {
    if (!(error instanceof PunctualError) || error.code !== 'SCHEDULE_EXISTS') throw error;
    const cleared = Object.fromEntries(DEFINITION_FIELDS.map((field) => [field, null]));
    await transport.request('PATCH', pathOf(name), { body: { ...cleared, ...definition }, retry: true });
  }
}

/** A schedule, and what can be done with it. */
export class ScheduleHandle<Output> {
  readonly name: string;
  readonly #transport: Transport;
  readonly #jobs: Jobs;

  constructor(name: string, transport: Transport, jobs: Jobs) {
    this.name = name;
    this.#transport = transport;
    this.#jobs = jobs;
  }

  get(): Promise<ScheduleView> {
    return this.#transport.request('GET', pathOf(this.name));
  }

  /** Skips occurrences until it is resumed. */
  pause(): Promise<ScheduleView> {
    return this.#transport.request('POST', `${pathOf(this.name)}/pause`);
  }

  /** Goes on with the next occurrence. */
  resume(): Promise<ScheduleView> {
    return this.#transport.request('POST', `${pathOf(this.name)}/resume`);
  }

  /** Makes a job now, beside the timetable. */
  async run(): Promise<JobHandle<Output>> {
    const job = await this.#transport.request<Job>('POST', `${pathOf(this.name)}/run`);
    return new JobHandle(job.id, this.#jobs);
  }

  /** Runs the occurrences of a past time that have no run on record. */
  backfill(range: {
    readonly from: Date | string;
    readonly to: Date | string;
    readonly dryRun?: boolean;
  }): Promise<BackfillAnswer> {
    const { from, to, dryRun = false } = range;
    const body = { from: momentOf(from, 'from'), to: momentOf(to, 'to'), dryRun };
    // What has run is on record, so asking again starts nothing twice.
    return this.#transport.request('POST', `${pathOf(this.name)}/backfill`, { body, retry: true });
  }

  /** What became of its occurrences, newest first. */
  async occurrences(options: OccurrencesOptions = {}): Promise<readonly OccurrenceView[]> {
    const query = new URLSearchParams();
    if (options.from !== undefined) query.set('from', momentOf(options.from, 'from'));
    if (options.to !== undefined) query.set('to', momentOf(options.to, 'to'));
    if (options.limit !== undefined) query.set('limit', String(options.limit));
    const path = `${pathOf(this.name)}/occurrences?${query}`;
    return (await this.#transport.request<Page<OccurrenceView>>('GET', path)).data;
  }

  /** Ends it; jobs that have started go on. */
  async delete(): Promise<void> {
    await this.#transport.request('DELETE', pathOf(this.name));
  }
}

function pathOf(name: string): string {
  return `/v1/schedules/${encodeURIComponent(name)}`;
}
