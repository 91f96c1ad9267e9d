import type { Config } from '../core/config.js';
import { type ParsedSchedule, parseDefinition } from '../core/schedule-definition.js';
import type { ScheduleRow } from '../store/schedules.js';

/** Definitions kept in memory after they were worked out: the same few hundred are due again and again. */
const KEPT = 5_000;
const LONGEST_KEPT = 4_096;

/**
 * Stored definitions as they can be fired. They were checked when they were stored; what an operator has
 * lowered since then does not stop a schedule.
 */
export class Parsing {
  private readonly kept = new Map<string, ParsedSchedule>();

  constructor(private readonly config: Config) {}

  parse(schedule: ScheduleRow): ParsedSchedule {
    const { definition } = schedule;
    const key = `${schedule.created_at} ${definition}`;
    const known = this.kept.get(key);
    if (known) return known;
    const parsed = parseStored(schedule, this.config);
    if (definition.length > LONGEST_KEPT) return parsed;
    if (this.kept.size >= KEPT) this.kept.delete(this.kept.keys().next().value!);
    this.kept.set(key, parsed);
    return parsed;
  }
}

/** A stored definition as it can be fired. */
export function parseStored(schedule: ScheduleRow, config: Config): ParsedSchedule {
  const { created_at: createdAt } = schedule;
  const parsed = parseDefinition(JSON.parse(schedule.definition), {
    createdAt,
    now: createdAt,
    maxPayload: Number.MAX_SAFE_INTEGER,
    maxDepth: Number.MAX_SAFE_INTEGER,
    jobTimeout: config.jobTimeout,
    maxJobTimeout: Number.MAX_SAFE_INTEGER,
  });
  const timeoutMs = Math.min(parsed.job.timeoutMs, config.maxJobTimeout);
  return { ...parsed, job: { ...parsed.job, timeoutMs } };
}
