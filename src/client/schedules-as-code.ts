import type { AnyTaskOrName, TaskOrName } from '../core/build-submission.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { addAll } from '../core/long-lists.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import type { AppliedSchedules, ScheduleSet } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import {
  type BuiltSchedule,
  buildSchedule,
  checkScheduleOptions,
  type ScheduleInputOption,
  type ScheduleOptions,
  type ScheduleTiming,
} from './schedule-handle.js';

/** A schedule of a task that a program has in its code; `schedule()` makes it. */
export interface TaskScheduleEntry {
  readonly task: AnyTaskOrName;
  readonly options: ScheduleOptions & ScheduleTiming & { readonly input?: unknown };
}

/** A schedule of a workflow or a batch; `scheduleWorkflow()` and `scheduleBatch()` make it. */
export interface RunScheduleEntry {
  /** What is sent. */
  build(): Promise<BuiltSchedule>;
}

/** A schedule that a program has in its code. */
export type ScheduleEntry = TaskScheduleEntry | RunScheduleEntry;

/** Says when a task runs, for `punctual.schedules([…])`. */
export function schedule<Output = unknown, Input = unknown>(
  task: TaskOrName<Input, Output>,
  options: ScheduleOptions & ScheduleTiming & ScheduleInputOption<NoInfer<Input>>,
): TaskScheduleEntry {
  checkScheduleOptions(options);
  return { task, options };
}

/** Options of `punctual.schedules([…])`. */
export interface SchedulesOptions {
  /**
   * The name of the program whose code this is; default `default`, which only one program of a tenant may use. Programs
   * that share a name remove each other's schedules with `prune`.
   */
  readonly owner?: string;
  /** Whether to remove the schedules of this owner that are no longer in the code; default false. */
  readonly prune?: boolean;
  /** Whether only to tell what would be done; default false. */
  readonly dryRun?: boolean;
}

/**
 * What was done, or with `dryRun` would be. `more` says that a dry run found more to remove than it names; a call that does
 * something removes all.
 */
export type SchedulesResult = AppliedSchedules;

const OPTIONS: OptionNames<SchedulesOptions> = { owner: true, prune: true, dryRun: true };
const DEFAULT_OWNER = 'default';
/** A first call may have to create many. */
const TIMEOUT_MS = 120_000;

/** Makes the schedules of a program what its code says. */
export async function applySchedules(
  transport: Transport,
  entries: readonly ScheduleEntry[],
  options: SchedulesOptions,
): Promise<SchedulesResult> {
  checkOptions('schedules()', options, OPTIONS);
  const { owner = DEFAULT_OWNER, prune = false, dryRun = false } = options;
  const schedules: (ScheduleDefinition & { name: string })[] = [];
  for (const entry of entries) {
    const building = 'build' in entry ? entry.build() : buildSchedule(entry.task, entry.options);
    const { name, definition } = await building;
    schedules.push({ name, ...definition });
  }
  const body: ScheduleSet = { managedBy: owner, schedules, prune, dryRun };
  const removed: string[] = [];
  let first: AppliedSchedules | null = null;
  for (;;) {
    // What is as it should be is left alone, so the request may be repeated.
    const answer: AppliedSchedules = await transport.request('PUT', '/v1/schedules', {
      body,
      retry: true,
      timeoutMs: TIMEOUT_MS,
    });
    first ??= answer;
    addAll(removed, answer.removed);
    if (answer.more && !dryRun) continue;
    const { created, changed, unchanged } = first;
    return { created, changed, removed, unchanged, more: answer.more, dryRun };
  }
}
