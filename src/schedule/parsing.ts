import type { Config } from '../core/config.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { type ParsedSchedule, parseDefinition } from '../core/schedule-definition.js';
import type { ScheduleRow } from '../store/schedules.js';

/** Definitions kept in memory after they were worked out: many schedules differ in nothing but their payload. */
const KEPT = 10_000;

/**
 * Stored definitions as they can be fired. They were checked when they were stored; what an operator has
 * lowered since then does not stop a schedule.
 */
export class Parsing {
  private readonly kept = new Map<string, ParsedSchedule>();

  constructor(private readonly config: Config) {}

  parse(schedule: ScheduleRow): ParsedSchedule {
    const { payload = null, ...rest } = JSON.parse(schedule.definition) as ScheduleDefinition;
    // An interval without a start counts from when its schedule was made.
    const since = rest.every === undefined ? 0 : schedule.created_at;
    const parsed = this.parseWithoutPayload(rest, since);
    return payload === null
      ? parsed
      : { ...parsed, job: { ...parsed.job, payload: JSON.stringify(payload) } };
  }

  private parseWithoutPayload(definition: ScheduleDefinition, createdAt: number): ParsedSchedule {
    const key = `${createdAt} ${JSON.stringify(definition)}`;
    const known = this.kept.get(key);
    if (known) return known;
    const parsed = parseChecked(definition, createdAt, this.config);
    if (this.kept.size >= KEPT) this.kept.delete(this.kept.keys().next().value!);
    this.kept.set(key, parsed);
    return parsed;
  }
}

/** A stored definition as it can be fired; null when this program does not understand it. */
export function tryParseStored(schedule: ScheduleRow, config: Config): ParsedSchedule | null {
  try {
    return parseChecked(JSON.parse(schedule.definition), schedule.created_at, config);
  } catch {
    return null;
  }
}

function parseChecked(definition: ScheduleDefinition, createdAt: number, config: Config): ParsedSchedule {
  const parsed = parseDefinition(definition, {
    ...{ createdAt, now: createdAt, jobTimeout: config.jobTimeout },
    maxPayload: Number.MAX_SAFE_INTEGER,
    maxDepth: Number.MAX_SAFE_INTEGER,
    maxJobTimeout: Number.MAX_SAFE_INTEGER,
  });
  const { job } = parsed;
  const timeoutMs = Math.min(job.definition.timeoutMs, config.maxJobTimeout);
  return { ...parsed, job: { ...job, definition: { ...job.definition, timeoutMs } } };
}
