import type { Config } from '../core/config.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { type ParsedSchedule, parseDefinition } from '../core/schedule-definition.js';
import { NO_TASKS, readsPayloads, type TaskLookup, type TaskRules } from '../core/task-defaults.js';
import type { ScheduleRow } from '../store/schedules.js';

/** Parsed definitions that are cached, without their payloads: many schedules differ in nothing else. */
const MAX_CACHED = 10_000;

/**
 * Parses stored definitions, and caches the results. Definitions were checked when they were stored: a limit that an
 * operator has lowered since then does not stop a schedule.
 */
export class ParsedSchedules {
  private readonly cache = new Map<string, ParsedSchedule>();
  /** The same with the defaults of a task, as long as that is as it is. */
  private readonly byTask = new WeakMap<TaskRules, Map<string, ParsedSchedule>>();

  constructor(private readonly config: Config) {}

  /** Parses the definition of a schedule; its job takes the defaults of its task, if that is among the given ones. */
  parse(schedule: ScheduleRow, tasks: TaskLookup = NO_TASKS): ParsedSchedule {
    const { payload = null, ...rest } = JSON.parse(schedule.definition) as ScheduleDefinition;
    // An interval without a start counts from the creation of its schedule.
    const since = rest.every === undefined ? 0 : schedule.created_at;
    // The members of a batch would make the key of the cache as large as themselves.
    if (rest.batch) return parseChecked(rest, since, this.config, tasks);
    const rules = rest.task === undefined ? undefined : tasks.get(rest.task);
    if (rules && readsPayloads(rules)) return parseChecked({ ...rest, payload }, since, this.config, tasks);
    const parsed = this.parseWithoutPayload(rest, since, rules, tasks);
    return payload === null ? parsed : withPayload(parsed, JSON.stringify(payload));
  }

  private parseWithoutPayload(
    definition: ScheduleDefinition,
    createdAt: number,
    rules: TaskRules | undefined,
    tasks: TaskLookup,
  ): ParsedSchedule {
    const cache = rules ? this.cacheOf(rules) : this.cache;
    const key = `${createdAt} ${JSON.stringify(definition)}`;
    const known = cache.get(key);
    if (known) return known;
    const parsed = parseChecked(definition, createdAt, this.config, tasks);
    if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value!);
    cache.set(key, parsed);
    return parsed;
  }

  private cacheOf(rules: TaskRules): Map<string, ParsedSchedule> {
    const cache = this.byTask.get(rules) ?? new Map<string, ParsedSchedule>();
    this.byTask.set(rules, cache);
    return cache;
  }
}

/** The tasks that stored definitions name, each once. */
export function tasksOfStored(schedules: readonly ScheduleRow[]): string[] {
  return [...new Set(schedules.flatMap(({ definition }) => JSON.parse(definition).task ?? []))] as string[];
}

/** Parses one stored definition; null when this version does not understand it. */
export function tryParseStored(
  schedule: ScheduleRow,
  config: Config,
  tasks: TaskLookup = NO_TASKS,
): ParsedSchedule | null {
  try {
    return parseChecked(JSON.parse(schedule.definition), schedule.created_at, config, tasks);
  } catch {
    return null;
  }
}

function parseChecked(
  definition: ScheduleDefinition,
  createdAt: number,
  config: Config,
  tasks: TaskLookup,
): ParsedSchedule {
  const parsed = parseDefinition(definition, {
    ...{ createdAt, now: createdAt, jobTimeout: config.jobTimeout, tasks },
    maxPayload: Number.MAX_SAFE_INTEGER,
    maxDepth: Number.MAX_SAFE_INTEGER,
    maxJobTimeout: Number.MAX_SAFE_INTEGER,
    allowCommands: true,
  });
  if (parsed.work.kind !== 'job') return parsed;
  const { job } = parsed.work;
  const timeoutMs = Math.min(job.definition.timeoutMs, config.maxJobTimeout);
  return { ...parsed, work: { kind: 'job', job: { ...job, definition: { ...job.definition, timeoutMs } } } };
}

/** The same with this payload, which is the input of a workflow. */
function withPayload(parsed: ParsedSchedule, payload: string): ParsedSchedule {
  const { work } = parsed;
  if (work.kind === 'job') return { ...parsed, work: { ...work, job: { ...work.job, payload } } };
  return work.kind === 'workflow' ? { ...parsed, work: { ...work, input: payload } } : parsed;
}
