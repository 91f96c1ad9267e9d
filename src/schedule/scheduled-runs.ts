import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import { JsonText } from '../core/json-reader.js';
import { type ParsedBatch, parseBatch } from '../core/parse-batch.js';
import type { ScheduledWork } from '../core/schedule-definition.js';
import { type JobDefinition, type ParsedSubmission, taskNamesOf } from '../core/submission.js';
import { uuidv7 } from '../core/uuid.js';
import { putDefinitions } from '../core/workflow/named-workflows.js';
import { allSteps, type ParsedWorkflow, parseWorkflow } from '../core/workflow/parse-workflow.js';
import { readSteps } from '../core/workflow/stored-graph.js';
import { resolveArtifacts, resolvedOr } from '../store/artifact-names.js';
import type { Queryable } from '../store/database.js';
import { type JobRow, toStored } from '../store/job-row.js';
import type { TermKey } from '../store/leader-statement.js';
import type { Names, Resolved } from '../store/names.js';
import { firstStep, newWorkflow } from '../store/new-workflow.js';
import type { ScheduleRow } from '../store/schedules.js';
import { type NewBatch, storeBatch } from '../store/submit-batch.js';
import { insertWorkflow, type NewWorkflow, type UsedDefinition } from '../store/submit-workflow.js';
import type { TaskDefinitions } from '../store/task-definitions.js';
import { definitionsOf, noDefinition, readDefinition } from '../store/workflow-definitions.js';

/**
 * What occurrences run besides single jobs: workflows and batches. They are read when an occurrence fires, with the newest
 * version of their definition and what their tasks say then; they are stored as a whole, in the transaction that records the
 * occurrence.
 */

/** What an occurrence is to run, with everything that can be known before it is planned. */
export type LoadedRun =
  | { readonly kind: 'job'; readonly job: ParsedSubmission }
  | { readonly kind: 'workflow'; readonly workflow: ParsedWorkflow; readonly definition: UsedDefinition }
  | { readonly kind: 'batch'; readonly batch: ParsedBatch }
  /** It cannot run as things are; the ledger says why. */
  | { readonly kind: 'refused'; readonly reason: string; readonly error: PunctualError };

/** A workflow or a batch to be made; `id` is that of the job by which it is judged whether it started in time. */
export interface PlannedGraph {
  readonly id: string;
  /** The id of the workflow or batch. */
  readonly runId: string;
  readonly at: number;
  readonly runAt: number;
  readonly run: Extract<LoadedRun, { readonly kind: 'workflow' | 'batch' }>;
}

/** A run that is ready to be stored. */
export type MadeRun = { readonly job: string; readonly names: readonly Resolved[] } & (
  | { readonly workflow: NewWorkflow; readonly batch?: undefined }
  | { readonly batch: NewBatch; readonly members: readonly JobRow[]; readonly workflow?: undefined }
);

/** The most characters of a reason in the ledger. */
const MAX_REASON = 300;
/** No look-back has to find what the leader stores itself, so its ids are never too old. */
const ANY_TIME = 2 ** 52;

interface RunsLeader {
  readonly hot: Queryable;
  readonly clock: Clock;
  readonly config: Config;
  readonly tasks: TaskDefinitions;
  readonly term: TermKey;
}

/** How many jobs a run has, and how many bytes they have about. */
export function sizeOf(run: LoadedRun): { readonly jobs: number; readonly bytes: number } {
  switch (run.kind) {
    case 'refused':
      return { jobs: 0, bytes: 0 };
    case 'job':
      return { jobs: 1, bytes: run.job.payload.length + 256 };
    default: {
      const jobs: readonly ParsedSubmission[] =
        run.kind === 'workflow' ? run.workflow.steps : run.batch.members;
      return { jobs: jobs.length, bytes: jobs.reduce((sum, { payload }) => sum + payload.length + 256, 0) };
    }
  }
}

/** How long after its due time a run begins by itself; null if that is for others to say, as when it waits for an event. */
export function startDelayMs(run: LoadedRun): number | null {
  switch (run.kind) {
    case 'refused':
      return null;
    case 'job':
      return 0;
    case 'batch':
      return run.batch.members.reduce((most, { definition }) => Math.max(most, delayOf(definition)), 0);
    case 'workflow': {
      const { steps } = run.workflow;
      const { wait, inner, delayMs } = steps[firstStep(steps)]!;
      return wait === null && inner === null ? delayMs : null;
    }
  }
}

function delayOf({ runAt, at }: JobDefinition): number {
  return runAt - at;
}

/** Reads, makes and stores the runs of occurrences. */
export class ScheduledRuns {
  constructor(
    private readonly leader: RunsLeader,
    private readonly names: Names,
  ) {}

  /** What an occurrence runs as things are now. Throws only if the database does not answer. */
  async load(tenant: string, work: ScheduledWork): Promise<LoadedRun> {
    try {
      switch (work.kind) {
        case 'job': {
          const [job] = await this.withArtifacts(tenant, [work.job]);
          return { kind: 'job', job: job! };
        }
        case 'workflow':
          return await this.loadWorkflow(tenant, work);
        default:
          return await this.loadBatch(tenant, work);
      }
    } catch (error) {
      if (!(error instanceof PunctualError) || error.code === 'DATABASE_UNAVAILABLE') throw error;
      const said = error.code === 'DEFINITION_NOT_FOUND' ? 'no-definition' : `invalid: ${error.message}`;
      return { kind: 'refused', reason: said.slice(0, MAX_REASON), error };
    }
  }

  private async loadWorkflow(
    tenant: string,
    { name, input }: Extract<ScheduledWork, { readonly kind: 'workflow' }>,
  ): Promise<LoadedRun> {
    const row = await readDefinition(this.leader.hot, tenant, name);
    if (!row) throw noDefinition(name);
    const { on_failure: onFailure, running, version } = row;
    const context = { ...this.leader.config, find: definitionsOf(this.leader.hot, tenant) };
    const jobs = await putDefinitions(await readSteps(row.jobs), context, [name]);
    const text = input === null ? null : new JsonText(input, Buffer.byteLength(input));
    const form = { name, jobs, onFailure, running, ...(text && { input: text }) };
    const steps = await allSteps(jobs, this.leader.config);
    const parsed = await parseWorkflow(form, await this.contextFor(tenant, steps));
    const workflow = { ...parsed, steps: await this.withArtifacts(tenant, parsed.steps) };
    return { kind: 'workflow', workflow, definition: { name, version } };
  }

  private async loadBatch(
    tenant: string,
    { batch }: Extract<ScheduledWork, { readonly kind: 'batch' }>,
  ): Promise<LoadedRun> {
    const context = await this.contextFor(tenant, batch.jobs);
    const parsed = await parseBatch(batch, context, { pointer: '/batch' });
    return { kind: 'batch', batch: { ...parsed, members: await this.withArtifacts(tenant, parsed.members) } };
  }

  /** Replaces the names of artifacts by ids, as they are now; throws if one is not there. */
  private async withArtifacts<J extends { readonly definition: JobDefinition }>(
    tenant: string,
    jobs: readonly J[],
  ): Promise<readonly J[]> {
    const { hot, clock, config } = this.leader;
    const named = jobs.map(({ definition }) => ({ tenant, definition }));
    const resolved = await resolveArtifacts(hot, named, clock.now(), config.artifactTimeout);
    if (resolved.size === 0) return jobs;
    return jobs.map((job) => ({ ...job, definition: resolvedOr(resolved, job.definition) }));
  }

  private async contextFor(tenant: string, jobs: readonly unknown[]) {
    const { config, clock, tasks } = this.leader;
    return { ...config, now: clock.now(), tasks: await tasks.find(tenant, () => taskNamesOf(jobs)) };
  }

  /** Makes the rows of a run. */
  async make(schedule: ScheduleRow, planned: PlannedGraph, byHandOf?: string): Promise<MadeRun> {
    const { tenant, name, changed_by } = schedule;
    const { run, id: job, runId, at, runAt } = planned;
    const now = this.leader.clock.now();
    const jobs: readonly ParsedSubmission[] =
      run.kind === 'workflow' ? run.workflow.steps : run.batch.members;
    const resolved = await this.names.resolve(
      jobs.map(({ definition: { queue, needs } }) => ({ tenant, queue, needs })),
      now,
    );
    const owner = { tenant, createdBy: byHandOf ?? changed_by };
    const scheduled = { schedule: name, occurrence: byHandOf === undefined ? at : null };
    const names = distinct(resolved);
    if (run.kind === 'workflow') {
      const origin = {
        definition: run.definition,
        scheduled,
        ids: { workflow: runId, first: job },
        dueAt: runAt,
      };
      const { laterThreshold } = this.leader.config;
      return {
        job,
        names,
        workflow: await newWorkflow(owner, run.workflow, resolved, now, laterThreshold, origin),
      };
    }
    const { onFailure, startTimeoutMs, places } = run.batch;
    const members = jobs.map(({ definition, payload }, i): JobRow => {
      const { queue, needs } = resolved[i]!;
      const due = runAt + delayOf(definition);
      const stored = toStored({ ...definition, runAt: due }, { ...owner, queue, needs, createdAt: now });
      return { id: i === 0 ? job : uuidv7(now), payload, definition: stored, schedule: name };
    });
    const dueAt = members.reduce((latest, { definition }) => Math.max(latest, definition.run_at), runAt);
    const batch: NewBatch = {
      ...{ id: runId, ...owner, onFailure, startTimeoutMs, dueAt, scheduled },
      places: JSON.stringify(places),
    };
    return { job, names, batch, members };
  }

  /** Stores runs, in a transaction that begins with the fence. Throws StaleNamesError if their names are gone. */
  async insert(db: Queryable, runs: readonly MadeRun[], now: number): Promise<void> {
    for (const run of runs) {
      const made = { names: run.names, at: ANY_TIME, since: 0 };
      if (run.workflow) await insertWorkflow(db, run.workflow, made, now);
      else await storeBatch(db, this.leader.term, run.batch, run.members, run.names, now);
    }
  }

  /** The database has lost names that were resolved: the next look reads them anew. */
  forgetNames(runs: readonly MadeRun[]): void {
    for (const { names } of runs) this.names.forget(names);
  }
}

function distinct(resolved: readonly Resolved[]): Resolved[] {
  return [...new Map(resolved.map((names) => [`${names.queue} ${names.needs}`, names])).values()];
}
