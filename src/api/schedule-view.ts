import type { Config } from '../core/config.js';
import { formatDuration } from '../core/duration.js';
import type { JobError } from '../core/job.js';
import { readJsonText } from '../core/json-reader.js';
import {
  DEFAULT_DST,
  DEFAULT_LATE_AFTER,
  DEFAULT_TIMEZONE,
  type ScheduleDefinition,
} from '../core/schedule.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import { type TaskLookup, withoutPayloadRules } from '../core/task-defaults.js';
import type { LastJob, OccurrenceView, ScheduleView } from '../core/wire.js';
import { tryParseStored } from '../schedule/parsed-schedules.js';
import type { PlacedRow } from '../store/job-places.js';
import type { LedgerRow } from '../store/occurrences.js';
import type { ScheduleWithLast } from '../store/schedules.js';
import { JsonText } from './json-text.js';

/** The deepest nesting of JSON that any setting allows. */
const DEEPEST = 1_000;

const time = (ms: number): string => new Date(ms).toISOString();

/** A stored schedule as the API shows it. Its payload is sent as its stored text. */
export class ScheduleText extends JsonText {
  readonly text: string;

  /** `lastJob` is left out where it was not read. */
  constructor(
    row: ScheduleWithLast,
    config: Config,
    now: number,
    tasks: TaskLookup,
    lastJob?: LastJob | null,
  ) {
    super();
    const { definition, payload: ownPayload } = apart(row);
    // Its jobs take what its task says now; one that does not fit its task is shown as it was stored.
    const parsed = tryParseStored(row, config, withoutPayloadRules(tasks)) ?? tryParseStored(row, config);
    const next = row.paused ? null : (parsed?.table.next(now) ?? null);
    const view: ScheduleView = {
      id: row.id,
      tenant: row.tenant,
      name: row.name,
      // A definition that this program cannot parse is shown as it was stored, and does not make a list fail.
      ...(parsed ? withDefaults(definition, parsed) : definition),
      paused: row.paused,
      nextAt: next === null ? null : time(next),
      managedBy: row.managed_by,
      lastAt: row.last_at === null ? null : time(row.last_at),
      lastJobId: row.last_run,
      ...(row.last_run_workflow !== null && { lastWorkflowId: row.last_run_workflow }),
      ...(row.last_run_batch !== null && { lastBatchId: row.last_run_batch }),
      ...(lastJob !== undefined && { lastJob }),
      createdAt: time(row.created_at),
      createdBy: row.created_by,
      changedAt: time(row.changed_at),
      changedBy: row.changed_by,
      version: row.version,
    };
    const payload = ownPayload ?? (parsed && parsed.work.kind !== 'batch' ? 'null' : undefined);
    const last = row.without_payload
      ? ',"omitted":["payload"]'
      : payload === undefined
        ? ''
        : `,"payload":${payload}`;
    this.text = `${JSON.stringify(view).slice(0, -1)}${last}}`;
  }
}

/** The definition without its payload, and the payload as its stored text. */
function apart(row: ScheduleWithLast): { definition: ScheduleDefinition; payload: string | null } {
  if (row.payload !== undefined) return { definition: JSON.parse(row.definition), payload: row.payload };
  const shape = { maxDepth: DEEPEST, text: 'payload', allowProto: true } as const;
  const whole = readJsonText(Buffer.from(row.definition), shape) as ScheduleDefinition;
  const { payload, ...definition } = whole as ScheduleDefinition & { payload?: { readonly text: string } };
  return { definition, payload: payload?.text ?? null };
}

function withDefaults(definition: ScheduleDefinition, parsed: ParsedSchedule): ScheduleDefinition {
  const job = parsed.work.kind === 'job' ? parsed.work.job.definition : null;
  return {
    ...(definition.cron !== undefined && {
      timezone: DEFAULT_TIMEZONE,
      dst: { ...DEFAULT_DST, ...definition.dst },
    }),
    catchUp: 'latest',
    overlap: parsed.overlap,
    jitter: formatDuration(parsed.jitterMs),
    lateAfter: DEFAULT_LATE_AFTER,
    ...(job && {
      ...{ queue: job.queue, priority: job.priority, timeout: formatDuration(job.timeoutMs) },
      delivery: job.delivery,
    }),
    ...withoutDst(definition),
  };
}

/** The definition without `dst`, which is shown with its defaults. */
function withoutDst({ dst: _, ...rest }: ScheduleDefinition): ScheduleDefinition {
  return rest;
}

/** How a job fares, for the view of its schedule. */
export function toLastJob(row: PlacedRow | null): LastJob | null {
  if (!row) return null;
  const error = row.error === null ? null : (JSON.parse(row.error) as JobError | null);
  return { id: row.id, state: row.state, errorCode: error?.code ?? null };
}

/** A row of the ledger as the API shows it. */
export function toOccurrenceView(row: LedgerRow): OccurrenceView {
  const { state, reason } = standing(row);
  return {
    at: time(row.at),
    state,
    ...(row.job !== null && { jobId: row.job }),
    ...(row.workflow !== null && { workflowId: row.workflow }),
    ...(row.batch !== null && { batchId: row.batch }),
    ...(row.lateBy !== null && { lateBy: row.lateBy }),
    ...(reason !== null && { reason }),
    ...(row.until !== null && { count: row.count, until: time(row.until) }),
  };
}

/** The state of an occurrence: from the ledger, and from its job since it was recorded. */
function standing(row: LedgerRow): Pick<OccurrenceView, 'state'> & { reason: string | null } {
  const { reason } = row;
  if (row.state === 'waiting') return { state: 'pending', reason };
  if (row.state !== 'ran') return { state: row.state, reason };
  if (row.neverStarted === 'pending') return { state: 'pending', reason };
  if (row.neverStarted === 'cancelled') return { state: 'skipped', reason: 'cancelled' };
  if (row.neverStarted !== null) return { state: 'missed', reason: 'not-started' };
  const late = row.lateBy !== null && row.lateAfter !== null && row.lateBy > row.lateAfter;
  return { state: late ? 'late' : 'ran', reason };
}
