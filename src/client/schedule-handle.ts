import { type AnyTaskOrName, buildSubmission, momentOf } from '../core/build-submission.js';
import type { Duration } from '../core/duration.js';
import { invalid, PunctualError } from '../core/errors.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { checkScheduleParts } from '../core/nested-options.js';
import { DEFINITION_FIELDS, type ScheduleDefinition } from '../core/schedule.js';
import { TASK_DEFAULTS, type TaskDefaults } from '../core/task.js';
import type { BackfillAnswer, OccurrenceView, Page, ScheduleView } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import type { JobHandle } from './job-handle.js';
import { eachItem, PAGE_OPTIONS, type PageOptions, queryText } from './pages.js';

/** Options of every schedule, whatever it runs. */
export interface RunScheduleOptions
  extends Pick<ScheduleDefinition, 'timezone' | 'dst' | 'catchUp' | 'overlap' | 'jitter' | 'lateAfter'> {
  /** Default: the name of the task or workflow. */
  readonly name?: string;
  /** No occurrence is due before this; an interval counts from it. */
  readonly startAt?: Date | string;
  /** No occurrence is due after this. */
  readonly endAt?: Date | string;
}

/** Options of a schedule of a task; the defaults are those of the task, then those of the server. */
export interface ScheduleOptions extends TaskDefaults, RunScheduleOptions {
  /** Jobs of the same key run one after another, or as many at once as `keyConcurrency` of their queue allows. */
  readonly concurrencyKey?: string;
}

/** When the schedule is due: exactly one of the three. */
export type ScheduleTiming =
  | { readonly cron: string; readonly every?: undefined; readonly at?: undefined }
  | { readonly every: Duration; readonly cron?: undefined; readonly at?: undefined }
  | { readonly at: Date | string; readonly cron?: undefined; readonly every?: undefined };

/** The input of every job; optional if the task's input may be undefined. */
export type ScheduleInputOption<Input> = undefined extends Input
  ? { readonly input?: Input }
  : { readonly input: Input };

/** The names of the options of every schedule. */
export const RUN_OPTIONS: OptionNames<RunScheduleOptions & ScheduleTiming> = {
  name: true,
  cron: true,
  every: true,
  at: true,
  timezone: true,
  dst: true,
  catchUp: true,
  overlap: true,
  jitter: true,
  lateAfter: true,
  startAt: true,
  endAt: true,
};
const OPTIONS: OptionNames<ScheduleOptions & ScheduleTiming & { readonly input?: unknown }> = {
  ...TASK_DEFAULTS,
  ...RUN_OPTIONS,
  concurrencyKey: true,
  input: true,
};

/** Refuses options that a schedule does not have. */
export function checkScheduleOptions(options: object): void {
  checkOptions('schedule()', options, OPTIONS);
  checkScheduleParts('schedule()', options);
}

/** Which part of a ledger to read. */
export interface OccurrencesOptions {
  readonly from?: Date | string;
  readonly to?: Date | string;
  readonly limit?: number;
}

const RANGE: OptionNames<Omit<OccurrencesOptions, 'limit'>> = { from: true, to: true };
const OCCURRENCES_OPTIONS: OptionNames<OccurrencesOptions> = { ...RANGE, limit: true };
const EACH_OCCURRENCE_OPTIONS = { ...RANGE, ...PAGE_OPTIONS };

/** Which past period to run again. */
interface BackfillRange {
  readonly from: Date | string;
  readonly to: Date | string;
  readonly dryRun?: boolean;
}

const BACKFILL_OPTIONS: OptionNames<BackfillRange> = { ...RANGE, dryRun: true };

/** A schedule that is ready to be sent. */
export interface BuiltSchedule {
  readonly name: string;
  readonly definition: ScheduleDefinition;
}

/** The definition of a schedule: the options over the task's defaults. */
export async function buildSchedule(
  taskOrName: AnyTaskOrName,
  options: ScheduleOptions & ScheduleTiming & { readonly input?: unknown },
): Promise<BuiltSchedule> {
  checkScheduleOptions(options);
  const { when, rest } = whenOf(options);
  const { name, input, ...job } = rest;
  const submission = await buildSubmission(taskOrName, input, job);
  const called = name ?? submission.task;
  if (called === undefined) {
    throw invalid([{ pointer: '/name', detail: 'is needed: a call has no name of its own' }]);
  }
  return { name: called, definition: { ...submission, ...when } };
}

/** The options that say when a schedule is due, in the form of the API, and the others. */
export function whenOf<O extends RunScheduleOptions & ScheduleTiming>(options: O) {
  const { cron, every, at, timezone, dst, catchUp, overlap, jitter, lateAfter, startAt, endAt, ...rest } =
    options;
  const said = {
    ...{ cron, every, timezone, dst, catchUp, overlap, jitter, lateAfter },
    at: at === undefined ? undefined : momentOf(at, 'at'),
    startAt: startAt === undefined ? undefined : momentOf(startAt, 'startAt'),
    endAt: endAt === undefined ? undefined : momentOf(endAt, 'endAt'),
  };
  const when = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  return { when: when as ScheduleDefinition, rest };
}

/** Creates the schedule, or replaces the definition of the one of that name; a program may do so at every start. */
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

/** A schedule of the cluster; `Run` is what it runs: a job, a workflow or a batch. */
export class ScheduleHandle<Output, Run = JobHandle<Output>> {
  readonly name: string;
  readonly #transport: Transport;
  readonly #handleOf: (id: string) => Run;

  constructor(name: string, transport: Transport, handleOf: (id: string) => Run) {
    this.name = name;
    this.#transport = transport;
    this.#handleOf = handleOf;
  }

  get(): Promise<ScheduleView> {
    return this.#transport.request('GET', pathOf(this.name));
  }

  /** Skips occurrences until it is resumed. */
  pause(): Promise<ScheduleView> {
    return this.#transport.request('POST', `${pathOf(this.name)}/pause`);
  }

  /** Continues with the next occurrence. */
  resume(): Promise<ScheduleView> {
    return this.#transport.request('POST', `${pathOf(this.name)}/resume`);
  }

  /** Makes a job, workflow or batch now, independently of the schedule's times. */
  async run(): Promise<Run> {
    const { id } = await this.#transport.request<{ id: string }>('POST', `${pathOf(this.name)}/run`);
    return this.#handleOf(id);
  }

  /** Runs the occurrences of a past period for which the ledger has no run. */
  backfill(range: BackfillRange): Promise<BackfillAnswer> {
    checkOptions('backfill()', range, BACKFILL_OPTIONS);
    const { from, to, dryRun = false } = range;
    const body = { from: momentOf(from, 'from'), to: momentOf(to, 'to'), dryRun };
    // The ledger records what has run, so a repeated request starts nothing twice.
    return this.#transport.request('POST', `${pathOf(this.name)}/backfill`, { body, retry: true });
  }

  /** The ledger of its occurrences, newest first. */
  async occurrences(options: OccurrencesOptions = {}): Promise<readonly OccurrenceView[]> {
    checkOptions('occurrences()', options, OCCURRENCES_OPTIONS);
    const { limit, ...range } = options;
    const query = { ...rangeQuery(range), limit: limit === undefined ? undefined : String(limit) };
    const path = `${pathOf(this.name)}/occurrences${queryText(query)}`;
    return (await this.#transport.request<Page<OccurrenceView>>('GET', path)).data;
  }

  /** Deletes the schedule; jobs that have started go on. */
  async delete(): Promise<void> {
    await this.#transport.request('DELETE', pathOf(this.name));
  }
}

/** The whole ledger of a schedule, newest first; it outlives the schedule. */
export function eachOccurrence(
  transport: Transport,
  name: string,
  options: Omit<OccurrencesOptions, 'limit'> & PageOptions,
): AsyncGenerator<OccurrenceView, void, undefined> {
  checkOptions('occurrences()', options, EACH_OCCURRENCE_OPTIONS);
  const { from, to, ...paging } = options;
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  return eachItem(transport, `${pathOf(name)}/occurrences`, rangeQuery(range), paging);
}

function rangeQuery({ from, to }: Omit<OccurrencesOptions, 'limit'>) {
  return {
    from: from === undefined ? undefined : momentOf(from, 'from'),
    to: to === undefined ? undefined : momentOf(to, 'to'),
  };
}

function pathOf(name: string): string {
  return `/v1/schedules/${encodeURIComponent(name)}`;
}
