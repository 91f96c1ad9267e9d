import type { Config } from '../core/config.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { type ParsedSchedule, parseDefinition } from '../core/schedule-definition.js';
import type { ScheduleRow } from '../store/schedules.js';

/** Parsed definitions that are cached, without their payloads: many schedules differ in nothing else. */
const MAX_CACHED = 10_000;

/**
 * Parses stored definitions, and caches the results. Definitions were checked when they were stored: a limit that an
 * operator has lowered since then does not stop a schedule.
 */
export class ParsedSchedules {
  private readonly cache = new Map<string, ParsedSchedule>();

  constructor(private readonly config: Config) {}

  parse(schedule: ScheduleRow): ParsedSchedule {
    const { payload = null, ...rest } = JSON.parse(schedule.definition) as ScheduleDefinition;
    // An interval without a start counts from the creation of its schedule.
    const since = rest.every === undefined ? 0 : schedule.created_at;
    const parsed = this.parseWithoutPayload(rest, since);
    return payload === null
      ? parsed
      : { ...parsed, job: { ...parsed.job, payload: JSON.stringify(payload) } };
  }

  private parseWithoutPayload(definition: ScheduleDefinition, createdAt: number): ParsedSchedule {
    const key = `${createdAt} ${JSON.stringify(definition)}`;
    const known = this.cache.get(key);
    if (known) return known;
    const parsed = parseChecked(definition, createdAt, this.config);
    if (this.cache.size >= MAX_CACHED) this.cache.delete(this.cache.keys().next().value!);
    this.cache.set(key, parsed);
    return parsed;
  }
}

/** Parses one stored definition; null when this version does not understand it. */
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
