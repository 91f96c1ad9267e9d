import { checkOptions, type OptionNames } from '../core/known-options.js';
import { checkScheduleParts } from '../core/nested-options.js';
import type { WorkflowDefinition } from '../core/workflow/workflow-builder.js';
import { type BatchOptions, buildBatch, type Member } from './batch-handle.js';
import {
  type BuiltSchedule,
  RUN_OPTIONS,
  type RunScheduleOptions,
  type ScheduleInputOption,
  type ScheduleTiming,
  whenOf,
} from './schedule-handle.js';
import type { RunScheduleEntry } from './schedules-as-code.js';

/** Schedules of workflows and batches. */

/** Options of a schedule of a workflow; each occurrence starts the newest version of its definition. */
export type WorkflowScheduleOptions<Input> = RunScheduleOptions & ScheduleTiming & ScheduleInputOption<Input>;

/** Options of a schedule of a batch. */
export type BatchScheduleOptions = RunScheduleOptions &
  ScheduleTiming &
  Pick<BatchOptions, 'onFailure' | 'startTimeout'> & { readonly name: string };

const WORKFLOW_OPTIONS: OptionNames<RunScheduleOptions & ScheduleTiming & { readonly input?: unknown }> = {
  ...RUN_OPTIONS,
  input: true,
};
const BATCH_OPTIONS: OptionNames<BatchScheduleOptions> = {
  ...RUN_OPTIONS,
  onFailure: true,
  startTimeout: true,
};

/**
 * Says when a workflow starts, for `punctual.schedules([…])`. Its definition must be stored: `punctual.define(workflow)` does so.
 */
export function scheduleWorkflow<Output = undefined, Input = unknown>(
  workflow: WorkflowDefinition<Input, Output> | string,
  options: WorkflowScheduleOptions<NoInfer<Input>>,
): RunScheduleEntry {
  return { build: () => Promise.resolve(buildWorkflowSchedule(workflow, options)) };
}

/** Says when jobs start together, for `punctual.schedules([…])`. */
export function scheduleBatch(
  members: readonly Member<unknown>[],
  options: BatchScheduleOptions,
): RunScheduleEntry {
  return { build: () => buildBatchSchedule(members, options) };
}

/** The definition of a schedule of a workflow. */
export function buildWorkflowSchedule(
  workflow: { readonly name: string } | string,
  options: RunScheduleOptions & ScheduleTiming & { readonly input?: unknown },
): BuiltSchedule {
  checkOptions('scheduleWorkflow()', options, WORKFLOW_OPTIONS);
  checkScheduleParts('scheduleWorkflow()', options);
  const called = typeof workflow === 'string' ? workflow : workflow.name;
  const { when, rest } = whenOf(options);
  const { name = called, input } = rest;
  return { name, definition: { ...when, workflow: called, ...(input !== undefined && { payload: input }) } };
}

/** The definition of a schedule of a batch. */
export async function buildBatchSchedule(
  members: readonly Member<unknown>[],
  options: BatchScheduleOptions,
): Promise<BuiltSchedule> {
  checkOptions('scheduleBatch()', options, BATCH_OPTIONS);
  checkScheduleParts('scheduleBatch()', options);
  const { when, rest } = whenOf(options);
  const { name, ...batch } = rest;
  return { name: name!, definition: { ...when, batch: await buildBatch(members, batch) } };
}
