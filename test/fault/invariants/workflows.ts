import { type EndState, isEnded } from '../../../src/core/job.js';
import type { RunIf } from '../../../src/core/workflow.js';
import type { Invariant, Seen } from '../checker.js';
import type { JobRecord, StepOrder, WorkflowRecord } from '../history.js';

/**
 * Steps run in order, and what becomes of each follows from the graph and from how the steps before it ended. The rule is
 * written down here once more, without any code of the scheduler.
 */
export const invariant: Invariant = {
  name: 'workflows',
  rule: 'No step starts before its parents have ended and its runIf holds, each ends as the graph says, and a workflow ends once.',
  *check(seen) {
    for (const workflow of seen.workflows) {
      const steps = stepsOf(seen, workflow);
      if (workflow.row === null) {
        if (steps.length > 0) yield { job: steps[0]!.job.id, detail: `${workflow.name} itself is missing` };
        continue;
      }
      if (steps.length < workflow.steps.length) {
        const detail = `${workflow.name} has ${steps.length} of its ${workflow.steps.length} steps`;
        yield { job: workflow.row.id, detail };
        continue;
      }
      yield* ended(seen, workflow, steps);
      yield* order(seen, workflow, steps);
      yield* decisions(seen, workflow, steps);
    }
  },
};

type Wrong = { readonly detail: string; readonly job: string };

interface Step extends StepOrder {
  readonly job: JobRecord;
  readonly parents: readonly Step[];
  /** What its end means for those that wait for it. */
  readonly weight: 'ok' | 'bad' | 'neither';
}

/** The steps that are on record, each with its parents. */
function stepsOf(seen: Seen, { steps }: WorkflowRecord): Step[] {
  const known = new Map<string, Step>();
  for (const step of steps) {
    const job = seen.jobByNumber.get(step.n);
    if (!job) continue;
    const parents = step.after.flatMap((name) => known.get(name) ?? []);
    known.set(step.name, { ...step, job, parents, weight: weigh(job, parents) });
  }
  return [...known.values()];
}

function weigh({ state }: JobRecord, parents: readonly Step[]): Step['weight'] {
  if (state === 'succeeded') return 'ok';
  if (state === 'skipped') return parents.some(({ weight }) => weight === 'bad') ? 'bad' : 'neither';
  return 'bad';
}

const HOLDS: Readonly<Record<RunIf, (parents: readonly Step[]) => boolean>> = {
  'all-succeeded': (parents) => parents.every(({ weight }) => weight === 'ok'),
  'all-finished': () => true,
  'any-failed': (parents) => parents.some(({ weight }) => weight === 'bad'),
  'any-succeeded': (parents) => parents.some(({ weight }) => weight === 'ok'),
};

/** Whether the steps before it let it run; nothing is before a first step. */
function mayRun({ parents, runIf }: Step): boolean {
  return parents.length === 0 || HOLDS[runIf](parents);
}

function* ended(seen: Seen, workflow: WorkflowRecord, steps: readonly Step[]): Generator<Wrong> {
  const { id, state, stepsLeft } = workflow.row!;
  const ends = (seen.auditByJob.get(id) ?? []).filter(({ kind }) => kind === 'over').length;
  const { name } = workflow;
  if (state === 'running') yield { job: id, detail: `${name} never ended` };
  else if (ends !== 1) yield { job: id, detail: `${name} ended ${ends} times` };
  else if (stepsLeft !== 0) yield { job: id, detail: `${name} ended with ${stepsLeft} steps left` };
  const hasFailed = steps.some(({ job }) => job.state === 'failed' || job.state === 'cancelled');
  const right = hasFailed ? 'failed' : 'succeeded';
  if (state !== 'running' && state !== right && !(state === 'cancelled' && mayBeCancelled(workflow)))
    yield { job: id, detail: `${name} is ${state} and should be ${right}` };
  // What a restored copy knows nothing of was never cancelled.
  if (workflow.cancel?.outcome === 'ok' && state !== 'cancelled' && !isReplayed(seen, workflow, steps))
    yield { job: id, detail: `${name} is ${state} although it was cancelled` };
}

/** No step before its parents, in the order of the writes and as the handlers saw it. */
function* order(seen: Seen, { name }: WorkflowRecord, steps: readonly Step[]): Generator<Wrong> {
  for (const step of steps) {
    const claim = seen.auditByJob.get(step.job.id)?.find(({ kind }) => kind === 'claimed');
    const start = seen.startsByJob.get(step.job.id)?.reduce((a, b) => (b.at < a.at ? b : a));
    for (const parent of step.parents) {
      const end = seen.auditByJob.get(parent.job.id)?.find(({ kind }) => kind === 'ended');
      if (claim && !(end && end.seq < claim.seq))
        yield {
          job: step.job.id,
          detail: `${name}: ${step.name} was claimed before ${parent.name} had ended`,
        };
      const returned = lastReturn(seen, parent.job);
      if (start && returned !== null && returned > start.at && !wasReplayed(seen, step, parent))
        yield {
          job: step.job.id,
          detail: `${name}: ${step.name} started before ${parent.name} had returned`,
        };
    }
  }
}

/** When the handler returned whose result is on record; null if none is. One that was timed out may return long after. */
function lastReturn(seen: Seen, { id, attempts }: JobRecord): number | null {
  const last = attempts.at(-1);
  if (last?.outcome !== 'succeeded') return null;
  const { fence } = last;
  const end = seen.endsByJob.get(id)?.find((each) => each.fence === fence && each.result === 'returned');
  return end?.at ?? null;
}

function* decisions(seen: Seen, workflow: WorkflowRecord, steps: readonly Step[]): Generator<Wrong> {
  const failed = steps.some(({ job }) => job.state === 'failed');
  const isStopped = (workflow.onFailure === 'stop' && failed) || mayBeCancelled(workflow);
  for (const step of steps) {
    const { state, id } = step.job;
    if (!isEnded(state)) continue;
    const wrong = (detail: string) => ({ job: id, detail: `${workflow.name}: ${step.name} ${detail}` });
    const claims = (seen.auditByJob.get(id) ?? []).filter(({ kind }) => kind === 'claimed').length;
    if (claims > 0 && !mayRun(step)) yield wrong(`ran although ${step.runIf} does not hold`);
    if (claims > 0 && workflow.onFailure === 'stop' && hasFailedBefore(step))
      yield wrong('ran after a failure that stops the workflow');
    const referred = step.parents.find(({ name }) => name === step.refersTo)?.n;
    for (const { from } of seen.startsByJob.get(id) ?? [])
      if (referred !== undefined && from !== referred)
        yield wrong(`got ${from} instead of a result of ${referred}`);
    if (state === 'skipped' && seen.startsByJob.has(id) && !seen.replayed.has(id))
      yield wrong('started and was then skipped');
    const allowed = allowedEnds(seen, workflow, step, isStopped);
    if (!allowed.includes(state)) yield wrong(`is ${state} and should be ${allowed.join(' or ')}`);
  }
}

function hasFailedBefore({ parents }: Step): boolean {
  return parents.some((parent) => parent.job.state === 'failed' || hasFailedBefore(parent));
}

function allowedEnds(seen: Seen, workflow: WorkflowRecord, step: Step, isStopped: boolean): EndState[] {
  const own = mayRun(step) ? ownEnds(seen, step) : [];
  if (!isStopped) return own.length > 0 ? own : ['skipped'];
  const cancels = mayBeCancelled(workflow) || workflow.running === 'cancel';
  return [...own, 'skipped', ...(cancels ? (['cancelled'] as const) : [])];
}

/** How a step ends that runs, as its order says; an at-most-once one may be lost, or timed out by a clock that leapt ahead. */
function ownEnds(seen: Seen, { n, job }: Step): EndState[] {
  const { failures, maxAttempts, atMostOnce } = seen.orderByNumber.get(n)!;
  if (failures >= maxAttempts) return ['failed'];
  const { outcome } = job.attempts.at(-1) ?? {};
  return atMostOnce && (outcome === 'lost' || outcome === 'timed-out') ? ['failed'] : ['succeeded'];
}

function mayBeCancelled({ cancel }: WorkflowRecord): boolean {
  return cancel !== null && cancel.outcome !== 'refused';
}

function isReplayed(seen: Seen, workflow: WorkflowRecord, steps: readonly Step[]): boolean {
  return seen.replayed.has(workflow.row!.id) || wasReplayed(seen, ...steps) || wasRestored(seen, workflow);
}

function wasReplayed(seen: Seen, ...steps: readonly Step[]): boolean {
  return steps.some(({ job }) => seen.replayed.has(job.id));
}

/** Whether it was cancelled in a time that a restored copy knows nothing of. */
function wasRestored(seen: Seen, { cancel }: WorkflowRecord): boolean {
  return (
    cancel !== null &&
    seen.faults.some(
      ({ restored }) =>
        restored && cancel.sentAt <= restored.downAt && cancel.answeredAt >= restored.copiedAt,
    )
  );
}
