import type { FieldError } from '../core/errors.js';
import type { JobError } from '../core/job.js';
import type { JsonOutline } from '../core/json-outline.js';
import { JsonText } from '../core/json-reader.js';
import { checkPayload, readsPayloads } from '../core/task-defaults.js';
import { inSlices } from '../core/time-slice.js';
import {
  outlineResult,
  type Resolution,
  resolveReferences,
  searchReferences,
} from '../core/workflow/references.js';
import { eventOf, type Waits, wakeAt } from '../core/workflow/waiting.js';
import {
  findEvents,
  findSteps,
  type NamedStep,
  type OpenPayload,
  readPayloads,
  readResult,
} from '../store/step-inputs.js';
import type { EndedUnrun, ReleasedStep, StepCounts } from '../store/workflow-portions.js';
import { released } from './plan-portion.js';
import type { WorkflowLeader } from './workflow-leader.js';

/** The most bytes of payloads that one statement writes, if there is more than one of them. */
const MAX_RESOLVED_BYTES = 4 * 1024 * 1024;

/** A step whose parents have ended, with its workflow and tenant. */
export interface ReadyStep extends Pick<StepCounts, 'id' | 'delayMs' | 'wait' | 'inner' | 'refers'> {
  readonly workflow: string;
  readonly tenant: string;
  /** Whether the workflow is on hold. */
  readonly held: boolean;
}

/** What becomes of steps whose parents have ended. */
export interface Prepared {
  readonly released: ReleasedStep[];
  readonly ended: EndedUnrun[];
  /** Steps that begin to wait, and until when; those whose workflows are to be started are looked at next. */
  readonly waiting: { readonly id: string; readonly wakeAt: number | null }[];
  /** The first step that did not fit into the statement; null if all did. */
  readonly beyond: string | null;
}

/** Prepares steps to run: puts results into payloads, ends waits whose events have come. */
export async function prepare(
  leader: WorkflowLeader,
  steps: readonly ReadyStep[],
  now: number,
): Promise<Prepared> {
  const prepared = {
    released: [] as ReleasedStep[],
    ended: [] as EndedUnrun[],
    waiting: [] as Prepared['waiting'],
  };
  for (const { id, inner } of steps) if (inner) prepared.waiting.push({ id, wakeAt: now });
  const plain = steps.filter(({ wait, inner, refers }) => wait === null && !inner && !refers);
  for (const step of plain) prepared.released.push(released(step, now));
  await prepareWaits(leader, steps, prepared, now);
  // The input of a workflow is resolved when it is started.
  const referring = steps.filter(({ refers, inner }) => refers && !inner);
  const beyond = referring.length === 0 ? null : await resolve(leader, referring, prepared, now);
  return { ...prepared, beyond };
}

async function prepareWaits(
  leader: WorkflowLeader,
  steps: readonly ReadyStep[],
  { ended, waiting }: Pick<Prepared, 'ended' | 'waiting'>,
  now: number,
): Promise<void> {
  const waits = steps.flatMap(({ id, workflow, wait }) =>
    wait === null ? [] : [{ id, workflow, wait: JSON.parse(wait) as Waits }],
  );
  if (waits.length === 0) return;
  const results = await eventResults(leader, waits);
  for (const { id, wait } of waits) {
    const result = results.get(id);
    if (result === undefined) waiting.push({ id, wakeAt: wakeAt(wait, now) });
    else ended.push({ id, state: 'succeeded', error: null, result });
  }
}

/** A step and what it waits for. */
export interface Waiter {
  readonly id: string;
  readonly workflow: string;
  readonly wait: Waits;
}

/** The payloads of the events that have come, by the steps that wait for them. */
export async function eventResults(
  { hot }: Pick<WorkflowLeader, 'hot'>,
  waits: readonly Waiter[],
): Promise<Map<string, string>> {
  const named = waits.flatMap(({ workflow, wait }) => {
    const name = eventOf(wait);
    return name === null ? [] : [{ workflow, name }];
  });
  const events = named.length === 0 ? [] : await findEvents(hot, named);
  const payloads = new Map(events.map(({ workflow, name, payload }) => [`${workflow} ${name}`, payload]));
  const results = new Map<string, string>();
  for (const { id, workflow, wait } of waits) {
    const payload = payloads.get(`${workflow} ${eventOf(wait)}`);
    if (payload !== undefined) results.set(id, payload);
  }
  return results;
}

/** Resolves references until the bytes are used up; answers with the first step beyond that. */
async function resolve(
  leader: WorkflowLeader,
  steps: readonly ReadyStep[],
  { released: done, ended }: Pick<Prepared, 'released' | 'ended'>,
  now: number,
): Promise<string | null> {
  const payloads = new Map(
    (
      await readPayloads(
        leader.hot,
        steps.map(({ id }) => id),
      )
    ).map((row) => [row.id, row]),
  );
  const results = new Results(leader);
  const limits = { maxBytes: leader.config.maxPayload, maxDepth: leader.config.maxDepth };
  let bytes = 0;
  for (const step of steps) {
    const row = payloads.get(step.id);
    // It was cancelled or has expired.
    if (!row) continue;
    const payload = new JsonText(row.payload, Buffer.byteLength(row.payload));
    const found = await inSlices(searchReferences(payload));
    const names = found.references.map((reference) => reference.step);
    const outlines = await results.of(step, names);
    const resolved = resolveReferences(payload, (name) => outlines.get(name) ?? null, limits, found);
    const error = resolved.error ?? (await misfit(leader, step, row, resolved.payload!.text));
    if (error) ended.push({ id: step.id, state: 'failed', error: JSON.stringify(error), result: null });
    else {
      bytes += resolved.payload!.bytes;
      if (bytes > MAX_RESOLVED_BYTES && bytes > resolved.payload!.bytes) return step.id;
      done.push(released(step, now, resolved.payload!.text));
    }
  }
  return null;
}

/** The input of a workflow that is a step, with results put in, or why it cannot be had. */
export async function resolveInner(
  leader: WorkflowLeader,
  step: Pick<ReadyStep, 'id' | 'workflow' | 'tenant'>,
): Promise<Resolution | null> {
  const [row] = await readPayloads(leader.hot, [step.id]);
  if (!row) return null;
  const payload = new JsonText(row.payload, Buffer.byteLength(row.payload));
  const found = await inSlices(searchReferences(payload));
  const names = found.references.map((reference) => reference.step);
  const outlines = await new Results(leader).of(step, names);
  const limits = { maxBytes: leader.config.maxPayload, maxDepth: leader.config.maxDepth };
  return resolveReferences(payload, (name) => outlines.get(name) ?? null, limits, found);
}

/** What is wrong with a resolved payload by the schema of its task. */
async function misfit(
  { tasks }: WorkflowLeader,
  { tenant }: ReadyStep,
  { task }: OpenPayload,
  payload: string,
): Promise<JobError | null> {
  const rules = task === null ? undefined : (await tasks.find(tenant, () => [task])).get(task);
  if (!rules || !readsPayloads(rules)) return null;
  const errors: FieldError[] = [];
  checkPayload(rules, payload, '/payload', errors);
  const [first] = errors;
  return first ? { code: 'INVALID_PAYLOAD', message: `${first.pointer}: ${first.detail}` } : null;
}

/** Results of steps, each read and outlined once. */
class Results {
  private readonly outlines = new Map<string, JsonOutline | null>();
  private readonly steps = new Map<string, NamedStep>();

  constructor(private readonly leader: WorkflowLeader) {}

  /** The results of those of the named steps that succeeded. */
  async of(
    { workflow, tenant }: Pick<ReadyStep, 'workflow' | 'tenant'>,
    names: readonly string[],
  ): Promise<Map<string, JsonOutline | null>> {
    const key = (name: string) => `${workflow} ${name}`;
    const unknown = [...new Set(names)].filter((name) => !this.steps.has(key(name)));
    if (unknown.length > 0) {
      for (const step of await findSteps(this.leader.hot, workflow, unknown))
        this.steps.set(key(step.name), step);
    }
    const found = new Map<string, JsonOutline | null>();
    for (const name of new Set(names)) {
      const step = this.steps.get(key(name));
      found.set(name, step ? await this.read(tenant, step) : null);
    }
    return found;
  }

  private async read(tenant: string, step: NamedStep): Promise<JsonOutline | null> {
    const known = this.outlines.get(step.id);
    if (known !== undefined) return known;
    const { outcome, finishedAt } = step;
    const result =
      outcome === 'succeeded' && finishedAt !== null
        ? await readResult(this.leader.hot, tenant, { id: step.id, finishedAt })
        : null;
    const outline = result === null ? null : outlineResult(new JsonText(result, Buffer.byteLength(result)));
    this.outlines.set(step.id, outline);
    return outline;
  }
}
