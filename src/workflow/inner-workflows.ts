import { PunctualError } from '../core/errors.js';
import { JsonText } from '../core/json-reader.js';
import { overQuota } from '../core/quotas.js';
import { taskNamesOf } from '../core/submission.js';
import { allStepsInside, parseInner } from '../core/workflow/parse-workflow.js';
import { resolveArtifacts, resolvedOr } from '../store/artifact-names.js';
import { holdWorkflow } from '../store/hold-workflow.js';
import {
  hasGrown,
  type InnerRow,
  readFamily,
  readInnerGraph,
  shareReach,
  tieInner,
} from '../store/inner-workflows.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { Names, type Resolved, StaleNamesError } from '../store/names.js';
import { newWorkflow, reachWith } from '../store/new-workflow.js';
import { toWaiting } from '../store/read-backlog.js';
import { readWorkflow, type WorkflowRow } from '../store/read-workflows.js';
import type { WokenStep } from '../store/step-inputs.js';
import { type Made, takeRoomFor } from '../store/submit-jobs.js';
import { insertWorkflow, NEVER, type NewWorkflow } from '../store/submit-workflow.js';
import {
  awaitRoom,
  countRoom,
  NoRoomError,
  type Room,
  RoomLockedError,
  takeRoomSoon,
} from '../store/tenant-usage.js';
import type { EndedUnrun } from '../store/workflow-portions.js';
import { endOfOuter, skipReason } from './plan-portion.js';
import { resolveInner } from './step-inputs.js';
import type { WorkflowLeader } from './workflow-leader.js';

/** How often room for the steps of one is looked for before others are seen to. */
const ROOM_TRIES = 3;

/** What the inner workflows need of the others. */
interface InnerParts {
  /** Runs what failed in a workflow again, which is on hold then if the one around it is. */
  readonly retry: (workflow: WorkflowRow, held: boolean) => Promise<void>;
  /** Called when one was stored, with when the first of its jobs is to have started by. */
  readonly onStored: (startBefore: number | null) => void;
}

/**
 * Starts the workflows that are steps of others, when those are released. A step that is to start one is a step that is
 * looked at now: the next leader looks at it, too, until it is tied to its workflow, in the transaction that stores that.
 * The step ends in the statement that ends its workflow.
 */
export class InnerWorkflows {
  private readonly names: Names;

  constructor(
    private readonly leader: WorkflowLeader,
    private readonly parts: InnerParts,
  ) {
    this.names = new Names(leader.hot, leader.config);
  }

  /** Starts the workflow of a step; answers how the step ends if it does so at once. To be called by those who are alone. */
  async start({ id, workflow, tenant }: WokenStep): Promise<EndedUnrun | null> {
    const { leader } = this;
    const outer = await readWorkflow(leader.hot, tenant, workflow);
    const step = await readInnerGraph(leader.hot, id);
    if (!outer || !step) return null;
    if (outer.stopping !== null) return { id, state: 'skipped', error: skipReason(true), result: null };
    try {
      const known = step.inner === null ? null : await readWorkflow(leader.hot, tenant, step.inner);
      // One that is being stopped has nobody to run for any more.
      const isWindingDown = known?.state === 'running' && known.stopping !== null;
      if (known && !isWindingDown) return await this.resume(id, known, outer.held);
      const input = step.refers ? await resolveInner(leader, { id, workflow, tenant }) : null;
      if (input?.error) return { id, state: 'failed', error: JSON.stringify(input.error), result: null };
      await this.store(id, outer, step, input?.payload);
      return null;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const { code, message } = error;
      return { id, state: 'failed', error: JSON.stringify({ code, message }), result: null };
    }
  }

  /** A step that runs again has what failed in its workflow run again; one that still runs is waited for. */
  private async resume(step: string, inner: WorkflowRow, held: boolean): Promise<EndedUnrun | null> {
    const { leader } = this;
    if (inner.state === 'succeeded') return endOfOuter(step, inner.id, inner.state);
    if (inner.state !== 'running') await this.parts.retry(inner, held);
    // If this is not done any more, the next look finds that the workflow runs.
    await leader.write(() => tieInner(leader.hot, leader.term, step, inner.id, inner.depth));
    return null;
  }

  private async store(
    step: string,
    outer: WorkflowRow,
    { graph, payload }: InnerRow,
    resolved?: JsonText,
  ): Promise<void> {
    const { leader } = this;
    const { tenant, created_by: createdBy } = outer;
    const steps = await allStepsInside(graph, leader.config);
    const tasks = await leader.tasks.find(tenant, () => taskNamesOf(steps));
    const now = leader.clock.now();
    const depth = outer.depth + 1;
    const stored = payload === null ? null : new JsonText(payload, Buffer.byteLength(payload));
    const input = resolved ?? stored;
    const unresolved = await parseInner(graph, { ...leader.config, now, tasks, depth }, { input });
    const artifacts = await resolveArtifacts(
      leader.hot,
      unresolved.steps.map(({ definition }) => ({ tenant, definition })),
      now,
      leader.config.artifactTimeout,
    );
    const parsed =
      artifacts.size === 0
        ? unresolved
        : {
            ...unresolved,
            steps: unresolved.steps.map((step) => ({
              ...step,
              definition: resolvedOr(artifacts, step.definition),
            })),
          };
    // The task of a step may name another queue than when the outer workflow was submitted.
    const reach = reachWith(outer, parsed.steps);
    const family = hasGrown(outer, reach) ? await readFamily(leader.hot, outer.id) : [];
    const named = parsed.steps.map(({ definition: { queue, needs } }) => ({ tenant, queue, needs }));
    const storeOnce = async (resolved: readonly Resolved[], isCounted: boolean): Promise<NewWorkflow> => {
      // Its jobs are told to the leader, which is here, and so may be of any age.
      const made: Made = {
        ...{ names: resolved, at: NEVER, since: performance.now() },
        ...(isCounted && { counted: tenant }),
      };
      const form = { ...parsed, name: parsed.name ?? outer.name, key: null };
      const { laterThreshold } = leader.config;
      const alone = await newWorkflow({ tenant, createdBy }, form, resolved, now, laterThreshold);
      const workflow = { ...alone, ...reach };
      await leader.write(() =>
        leaderTransaction(leader.hot, leader.term, async (db) => {
          await takeRoomFor(db, workflow.steps, made, takeRoomSoon);
          await insertWorkflow(db, workflow, made, now);
          await tieInner(db, leader.term, step, workflow.id, depth);
          await shareReach(db, leader.term, family, reach);
          if (outer.held) await holdWorkflow(db, leader.term, tenant, workflow.id, true, true);
        }),
      );
      return workflow;
    };
    await this.withRoom(tenant, async (isCounted) => {
      const resolved = await this.names.resolve(named, now);
      const workflow = await storeOnce(resolved, isCounted).catch(async (error: unknown) => {
        if (!(error instanceof StaleNamesError)) throw error;
        this.names.forget(resolved);
        return storeOnce(await this.names.resolve(named, now), isCounted);
      });
      await this.tell(workflow, isCounted);
    });
  }

  /** Stores a workflow, with room for its steps if the jobs of its tenant are counted; throws QUOTA_EXCEEDED if there is none. */
  private async withRoom(tenant: string, store: (isCounted: boolean) => Promise<void>): Promise<void> {
    const { pool, addedJobs } = this.leader;
    if (!addedJobs.mayCount(tenant)) return store(false);
    for (let tries = 1; ; tries += 1) {
      try {
        return await store(true);
      } catch (error) {
        // After some tries, other steps are looked at before this one is again.
        if (tries === ROOM_TRIES) throw error;
        if (error instanceof RoomLockedError) await awaitRoom(pool, tenant);
        else if (error instanceof NoRoomError) {
          const room = await countRoom(pool, tenant);
          if (room === null) return store(false);
          mustHaveRoom(room, error);
        } else throw error;
      }
    }
  }

  private async tell({ tenant, steps }: NewWorkflow, isCounted: boolean): Promise<void> {
    const live = steps.filter(({ admitAt }) => admitAt === null);
    const waiting = live.map(({ row }) => toWaiting(row));
    await this.leader.admit(waiting);
    if (!isCounted) this.leader.addedJobs.note(tenant, live.length, steps.length - live.length);
    if (this.leader.events.isHeard) this.leader.events.submitted(waiting);
    const startBefore = steps.flatMap(({ row }) => row.definition.start_before ?? []);
    const first = startBefore.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
    this.parts.onStored(startBefore.length > 0 ? first : null);
  }
}

function mustHaveRoom(room: Room, { tenant, wanted: { live, later } }: NoRoomError): void {
  const { liveJobs, laterJobs } = room.quotas;
  const refused = (name: 'liveJobs' | 'laterJobs', limit: number | null, kind: string) =>
    overQuota(
      name,
      limit ?? 0,
      `Tenant ${tenant} may have ${limit} jobs that ${kind}; the workflow was not started.`,
    );
  if (live > room.live) throw refused('liveJobs', liveJobs, 'are due or run');
  if (later > room.later) throw refused('laterJobs', laterJobs, 'are due later, blocked or on hold');
}

/** What the user's own request could have been refused with; anything else is tried again. */
function isRefusal(error: unknown): error is PunctualError {
  return error instanceof PunctualError && error.status < 500;
}
