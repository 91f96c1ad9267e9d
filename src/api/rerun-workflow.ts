import { PunctualError } from '../core/errors.js';
import type { Labels, Target } from '../core/job.js';
import { KEEP } from '../core/keys.js';
import { type Backoff, DEFAULT_BACKOFF } from '../core/retry.js';
import { type JobDefinition, needsOf } from '../core/submission.js';
import { TimeSlice } from '../core/time-slice.js';
import { FIRST_UUID } from '../core/uuid.js';
import type { ParsedInner, ParsedStep, ParsedWorkflow } from '../core/workflow/parse-workflow.js';
import type { Waits } from '../core/workflow/waiting.js';
import type { Queryable } from '../store/database.js';
import { readSubmittedSteps, type SubmittedStep } from '../store/read-submitted-steps.js';
import { readGraph, type WorkflowRow } from '../store/read-workflows.js';

/** Steps that one statement reads, and about how many bytes of their payloads. */
const PORTION = 200;
const PORTION_BYTES = 4_194_304;
/** Steps and edges that are worked on before the time slice is checked again. */
const LOOK_EVERY = 500;

/** What a workflow is submitted again with. */
export interface RerunContext {
  readonly now: number;
  readonly maxBytes: number;
  /** Checks a workflow that is a step, from its text. */
  readonly parseInner: (text: string) => Promise<ParsedInner>;
}

/**
 * A workflow as it was submitted, to be submitted again: its graph, what its steps say, and payloads with their references.
 * What a schema or a task said when it was submitted is part of its jobs, and holds again. `startBefore` is left out, as by a
 * retry: it is a moment, and has mostly passed. Steps that other steps have added are left out: these add them again.
 */
export async function submittedWorkflow(
  db: Queryable,
  row: WorkflowRow,
  key: string | null,
  { now, maxBytes, parseInner }: RerunContext,
): Promise<ParsedWorkflow> {
  const read = await readAll(db, row, maxBytes);
  const indexes = new Map(read.map(({ id }, i) => [id, i]));
  const parents = read.map((): number[] => []);
  const slice = new TimeSlice();
  for (const [i, { parent, child }] of (await readGraph(db, row.tenant, row.id)).entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    const [from, to] = [indexes.get(parent), indexes.get(child)];
    // Edges of steps that other steps have added lead nowhere.
    if (from !== undefined && to !== undefined) parents[to]!.push(from);
  }
  const definitions = new Definitions(now);
  const steps: ParsedStep[] = [];
  for (const [i, step] of read.entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    const { name, runIf, delayMs, refers, wait, inner, payload } = step;
    const theirs = parents[i]!.sort((a, b) => a - b);
    steps.push({
      ...{ name, runIf, delayMs, refers, payload, parents: theirs, definition: definitions.of(step) },
      wait: wait === null ? null : (JSON.parse(wait) as Waits),
      inner: inner === null ? null : await parseInner(inner),
    });
  }
  const { name, on_failure: onFailure, running } = row;
  return { name, key, rerunOf: row.id, onFailure, running, steps };
}

/** The steps in the order of the submission, in which every step is behind its parents. */
async function readAll(db: Queryable, row: WorkflowRow, maxBytes: number): Promise<SubmittedStep[]> {
  const steps: SubmittedStep[] = [];
  let [bytes, count] = [0, 0];
  for (let after = FIRST_UUID; ; ) {
    const page = await readSubmittedSteps(db, row.tenant, row.id, after, PORTION, PORTION_BYTES);
    count += page.length;
    for (const step of page) {
      if (step.isAdded) continue;
      if (step.queue === null) throw gone(row.id);
      bytes += Buffer.byteLength(step.payload) + Buffer.byteLength(step.inner ?? '');
      steps.push(step);
    }
    if (bytes > maxBytes) throw tooLarge(row.id, maxBytes);
    if (page.length === 0) break;
    after = page.at(-1)!.id;
  }
  // It is being removed.
  if (count < row.steps) throw gone(row.id);
  return steps.sort((a, b) => a.place - b.place);
}

/** Definitions of steps. Steps that say the same share one, which then is converted and sent once. */
class Definitions {
  private readonly known = new Map<string, JobDefinition>();

  constructor(private readonly now: number) {}

  of(step: SubmittedStep): JobDefinition {
    const { queue, task, target, rank, maxAttempts, maxLosses, timeoutMs, concurrencyKey, hold } = step;
    const { atMostOnce, backoff, requires, delayMs } = step;
    const key = JSON.stringify([
      ...[queue, task, target, rank, maxAttempts, maxLosses, timeoutMs, concurrencyKey, hold],
      ...[atMostOnce, backoff, requires, delayMs],
    ]);
    const known = this.known.get(key);
    if (known) return known;
    const made = definitionOf(step, this.now);
    this.known.set(key, made);
    return made;
  }
}

function definitionOf(step: SubmittedStep, now: number): JobDefinition {
  const target = step.target === null ? null : (JSON.parse(step.target) as Target);
  const labels = step.requires === null ? {} : (JSON.parse(step.requires) as Labels);
  return {
    ...{ at: now, runAt: now + step.delayMs, queue: step.queue!, task: step.task, target },
    needs: needsOf(step.task ?? undefined, target ?? undefined, labels),
    priority: 10 - step.rank,
    ...{ key: null, keyRule: KEEP },
    retry: {
      maxAttempts: step.maxAttempts,
      backoff: step.backoff === null ? DEFAULT_BACKOFF : (JSON.parse(step.backoff) as Backoff),
      onWorkerLost: { maxAttempts: step.maxLosses },
    },
    backoffIsDefault: step.backoff === null,
    timeoutMs: step.timeoutMs,
    delivery: step.atMostOnce ? 'at-most-once' : 'at-least-once',
    ...{ concurrencyKey: step.concurrencyKey, startBefore: null, hold: step.hold },
  };
}

function gone(id: string): PunctualError {
  const detail = `Jobs of steps of workflow ${id} have left history, so that it is not known any more what it was.`;
  return new PunctualError('STEPS_GONE', detail);
}

function tooLarge(id: string, maxBytes: number): PunctualError {
  const detail = `The payloads of workflow ${id} have more than ${maxBytes} bytes in all.`;
  return new PunctualError('BODY_TOO_LARGE', detail);
}
