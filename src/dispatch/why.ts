import { humanDuration } from '../core/duration.js';
import type { Labels, Target } from '../core/job.js';
import { least } from '../core/long-lists.js';
import { bucketOfOrigin, originOfUrl } from '../core/origin.js';
import { type Bucket, rateView } from '../core/rate.js';
import type { Gate, Why } from '../core/wire.js';
import { eventOf, type Waits } from '../core/workflow/waiting.js';
import type { PlacedRow } from '../store/job-places.js';
import { findQueue } from '../store/queues.js';
import { readParents, readStepHold, readWait, type StepHold, type WaitRow } from '../store/read-workflows.js';
import { type NeedsInfo, type QueueInfo, toQueueInfo } from './directory.js';
import { Gang } from './gang.js';
import { explainGang } from './gang-reasons.js';
import type { LeaderState } from './leader-state.js';
import { describeNeeds } from './needs-text.js';
import { explainOrigin } from './origin-reasons.js';
import type { QueueShare } from './queue-share.js';
import type { WorkerSession } from './worker-session.js';

type Figures = Why['figures'];
type Needs = Omit<NeedsInfo, 'id'>;

/** What the one who asks may be told. */
export interface Audience {
  /** Only an operator is told about workers of other tenants. */
  readonly forOperator: boolean;
  /** Whether other steps of the job's workflow are named. */
  readonly namesSteps: boolean;
}

/** Why a job is not running, by the first gate it cannot pass. */
export async function explainWaiting(
  state: LeaderState,
  job: PlacedRow,
  { forOperator, namesSteps }: Audience,
): Promise<Why> {
  const answer = (gate: Gate, detail: string, figures: Figures = {}): Why => ({
    jobId: job.id,
    state: job.state,
    gate,
    detail,
    figures,
  });
  const now = state.clock.now();
  if (job.place === 'history') return answer('not-waiting', `The job has ended: ${job.state}.`);
  if (state.running.has(job.id)) {
    const { worker, cancelled_at } = job;
    const cancelled =
      cancelled_at === null
        ? ''
        : ` Its worker was told at ${new Date(cancelled_at).toISOString()} to stop, and has not confirmed yet.`;
    if (job.handed_on_at !== null) return explainHandedOn(job, answer);
    return answer('not-waiting', `The job is running.${cancelled}`, { worker });
  }
  const gang = state.gangs.of(job.id);
  if (gang instanceof Gang) {
    await state.directory.learn(gang.kinds);
    const { waitingFor, detail, figures } = await explainGang(state, gang);
    const batch = { batch: gang.id, waitingFor, ...figures };
    if (gang.dueAt > now)
      return answer('batch', `The batch may start at ${new Date(gang.dueAt).toISOString()}.`, batch);
    if (state.paused) return answer('cluster-paused', 'Dispatch is paused for the whole cluster.', batch);
    return answer('batch', detail, batch);
  }
  if (job.batch !== null)
    return answer('batch', 'The job waits for its batch, which the leader has not read yet.', {
      batch: job.batch,
    });
  const hold = job.workflow === null ? undefined : await readStepHold(state.hot, job.id);
  if (hold && (hold.parked || (hold.held && job.state === 'pending')))
    return explainHold(job, hold, now, answer);
  if (job.state === 'blocked' && job.workflow === null && job.artifact !== null) {
    const why = explainArtifact(job, job.artifact, answer);
    return job.held ? { ...why, detail: `${why.detail} The job is on hold, too.` } : why;
  }
  if (job.state === 'blocked') {
    const why = await explainBlocked(state, job, namesSteps, answer);
    if (!hold?.held) return why;
    const figures = { ...why.figures, workflowHeld: true };
    return { ...why, detail: `${why.detail} The workflow is on hold, too.`, figures };
  }
  if (job.held) return answer('hold', 'The job is on hold; release it to let it run.');
  if (job.raw)
    return answer('not-admitted', 'The job was submitted inside a transaction and is about to be admitted.');
  if (job.run_at > now) {
    return answer('due-time', `The job is due at ${new Date(job.run_at).toISOString()}.`, {
      dueInMs: job.run_at - now,
    });
  }
  if (job.place === 'later')
    return answer('not-admitted', 'The job is about to be admitted to the live jobs.');
  if (state.paused) return answer('cluster-paused', 'Dispatch is paused for the whole cluster.');
  // From the table, because memory knows only queues whose jobs it has met.
  const row = await findQueue(state.hot, job.tenant, job.queue);
  const queue = row ? toQueueInfo(row) : undefined;
  if (queue?.paused) return answer('queue-paused', `Queue ${job.queue} is paused.`);
  if (state.turns.has(job.id))
    return answer('being-claimed', 'The job is being handed to a worker right now.');
  // A job that memory does not know is read first, because the gates below depend on memory.
  if (queue && !isCovered(state, job, queue)) await state.follow([job.id]);
  if (!queue || !isCovered(state, job, queue))
    return answer('not-admitted', 'The leader has not read the job yet; it looks for new jobs every second.');
  return (
    explainLimits(state, job, queue, answer) ??
    explainCall(state, job, answer) ??
    explainWorkers(state, job, queue, answer, forOperator)
  );
}

/** An attempt that no worker has any more. */
function explainHandedOn(
  { worker, started_at, claimed_at, handed_on_at, timeout_ms }: PlacedRow,
  answer: Answer,
): Why {
  const until = (started_at ?? claimed_at ?? handed_on_at!) + timeout_ms;
  const moment = new Date(until).toISOString();
  const detail = `The attempt was handed on; it waits for a report until ${moment}.`;
  return answer('not-waiting', detail, { worker, handedOnAt: handed_on_at, reportUntil: moment });
}

/** A step that could start, if its workflow were not on hold. */
function explainHold(
  { workflow, held: isHeldItself, run_at: runAt }: PlacedRow,
  { held }: StepHold,
  now: number,
  answer: Answer,
): Why {
  const figures = { workflow, workflowHeld: held };
  const due = runAt > now ? ` The step is not due before ${new Date(runAt).toISOString()}.` : '';
  const also = `${due}${isHeldItself ? ' The job is on hold by itself, too.' : ''}`;
  if (held)
    return answer(
      'hold',
      `The workflow ${workflow} is on hold; release it to let the step run.${also}`,
      figures,
    );
  return answer('hold', `The workflow ${workflow} was released; the step is about to go on.${also}`, figures);
}

/** The most parents that a sentence names. */
const MOST_PARENTS = 5;

/** The steps of its workflow that a blocked job waits for. */
async function explainBlocked(
  state: LeaderState,
  job: PlacedRow,
  namesSteps: boolean,
  answer: Answer,
): Promise<Why> {
  const waiting = await readWait(state.hot, job.id);
  if (waiting) return explainWait(waiting, answer);
  const parents = await readParents(state.hot, job.id);
  const left = parents.filter(({ hasEnded }) => !hasEnded).map(({ name }) => name);
  const figures = { parents: parents.length, parentsLeft: left.length, workflow: job.workflow };
  if (left.length === 0 && job.artifact !== null) return explainArtifact(job, job.artifact, answer);
  if (left.length === 0)
    return answer('parents', 'The steps before it have ended; it is decided about.', figures);
  if (!namesSteps) return answer('parents', 'The job waits for the end of steps of its workflow.', figures);
  const more = left.length > MOST_PARENTS ? ` and ${left.length - MOST_PARENTS} more` : '';
  const names = `${left.slice(0, MOST_PARENTS).join(', ')}${more}`;
  const what = left.length === 1 ? `step ${names}` : `steps ${names}`;
  return answer('parents', `The job waits for the end of ${what} of its workflow.`, figures);
}

/** The artifact that a job waits for. */
function explainArtifact({ artifact_by: by }: PlacedRow, artifact: string, answer: Answer): Why {
  const until = by === null ? null : new Date(by).toISOString();
  const fails = until === null ? '' : ` If it has not arrived by ${until}, the job fails.`;
  const detail = `The job waits for artifact ${artifact}, which is not uploaded yet.${fails}`;
  return answer('artifact', detail, { artifact, until });
}

/** The time or the event that a step of a workflow waits for. */
function explainWait({ wait, wakeAt, inner }: WaitRow, answer: Answer): Why {
  if (wait === null) {
    const what = inner === null ? 'its workflow, which is about to start' : `workflow ${inner}`;
    return answer('workflow', `The step waits for the end of ${what}.`, { innerWorkflow: inner });
  }
  const event = eventOf(JSON.parse(wait) as Waits);
  const until = wakeAt === null ? '' : ` until ${new Date(wakeAt).toISOString()}`;
  if (event === null) return answer('due-time', `The step waits${until}.`, { wakeAt });
  return answer('event', `The step waits for the event ${event}${until}.`, { event, wakeAt });
}

/** Whether the job is in memory, or a cursor may cover it. */
function isCovered(state: LeaderState, job: PlacedRow, queue: QueueInfo): boolean {
  if (!state.isLoaded || state.backlog.find(job.id)) return true;
  return state.backlog.segmentsOf(queue.id).some((segment) => segment.hasUnread);
}

type Answer = (gate: Gate, detail: string, figures?: Figures) => Why;

/** The limit of its key, queue or tenant that holds the job back, if any. */
function explainLimits(
  state: LeaderState,
  job: PlacedRow,
  queue: QueueInfo,
  answer: Answer,
): Why | undefined {
  const share = state.shares.find(queue.id);
  if (!share) return undefined;
  const ready = { readyInQueue: readyIn(state, queue.id) };
  const key = job.concurrency_key;
  if (key !== null && share.runningOf(key) >= queue.keyConcurrency) {
    const detail = `Concurrency key ${key} has all the jobs running that queue ${job.queue} allows per key.`;
    return answer('limit', detail, {
      limit: queue.keyConcurrency,
      running: share.runningOf(key),
      key,
      ...ready,
    });
  }
  if (share.isSaturated) {
    const detail = `Queue ${job.queue} has as many jobs running as its limit allows.`;
    return answer('limit', detail, { limit: queue.concurrency, running: share.running, ...ready });
  }
  return (
    explainRate(state, share.bucket, `Queue ${job.queue}`, ready, answer) ??
    explainRate(state, share.tenant.bucket, `Tenant ${job.tenant}`, ready, answer)
  );
}

/** The origin that its target calls, if no call to it may start now. */
function explainCall(state: LeaderState, job: PlacedRow, answer: Answer): Why | undefined {
  const target = job.target === null ? null : (JSON.parse(job.target) as Target);
  if (target?.type !== 'http') return undefined;
  const { origins, backlog, clock } = state;
  const name = originOfUrl(target.url);
  const entry = backlog.find(job.id);
  const origin = entry
    ? origins.of(entry.needs)
    : (origins.find(job.tenant, name) ?? origins.find(job.tenant, bucketOfOrigin(name)));
  const reason = origin && explainOrigin(origin, clock.steady(), (at) => state.onDatabaseClock(at));
  return reason ? answer('origin', reason.detail, reason.figures) : undefined;
}

function explainRate(
  state: LeaderState,
  bucket: Bucket | null,
  whose: string,
  ready: Figures,
  answer: Answer,
): Why | undefined {
  const now = state.clock.steady();
  if (!bucket || bucket.isOpen(now)) return undefined;
  const { limit, per, burst } = rateView(bucket.rate);
  const opensInMs = Math.ceil(bucket.opensAt - now);
  const jobs = limit === 1 ? '1 job' : `${limit} jobs`;
  const next = `the next may start in ${humanDuration(opensInMs)}`;
  return answer('rate', `${whose} starts at most ${jobs} in ${per}; ${next}.`, {
    limit,
    per,
    burst,
    opensInMs,
    ...ready,
  });
}

/** The number of due jobs of the queue in memory, this one included. */
function readyIn(state: LeaderState, queue: number): number {
  return state.backlog.segmentsOf(queue).reduce((sum, segment) => sum + segment.readyCount, 0);
}

function explainWorkers(
  state: LeaderState,
  job: PlacedRow,
  queue: QueueInfo,
  answer: Answer,
  forOperator: boolean,
): Why {
  const needs = needsOf(job);
  const sessions = [...state.sessions.values()].filter(
    (session) => session.servesTenant(job.tenant) && !session.draining,
  );
  const serving = sessions.filter((session) => session.serves(queue));
  const fitting = serving.filter((session) => session.ability.hasAllOf(needs));
  const figures = {
    workers: sessions.length,
    workersOfQueue: serving.length,
    fittingWorkers: fitting.length,
  };
  if (fitting.length === 0) {
    const detail = `No live worker serves queue ${job.queue}${describeNeeds(needs)}.`;
    const others = forOperator ? workersOfOthers(state, needs, queue) : [];
    if (others.length === 0) return answer('no-fitting-worker', detail, figures);
    return answer('no-fitting-worker', `${detail} ${describeOthers(others, needs)}`, {
      ...figures,
      workersOfOtherTenants: others.length,
    });
  }
  const slots = fitting.reduce((sum, session) => sum + session.slots, 0);
  const freeSlots = fitting.reduce((sum, session) => sum + session.freeSlots, 0);
  const share = state.shares.find(queue.id);
  const readyInQueue = readyIn(state, queue.id);
  const all = { ...figures, slots, freeSlots, readyInQueue };
  if (freeSlots === 0) {
    const what =
      slots === 1
        ? 'The only slot of the fitting workers is'
        : `All ${slots} slots of the fitting workers are`;
    return answer('no-free-slot', `${what} in use.`, all);
  }
  return (
    explainWorkerRates(state, fitting, all, answer) ??
    explainShares(state, job, share, fitting, all, answer) ??
    answer('behind-others', 'Other jobs of the queue come first; it is next when they have started.', all)
  );
}

/** The workers that could run the job, but take jobs of another tenant only. */
function workersOfOthers(state: LeaderState, needs: Needs, queue: QueueInfo): readonly WorkerSession[] {
  return [...state.sessions.values()].filter(
    ({ tenant, queues, ability, draining }) =>
      tenant !== null &&
      tenant !== needs.tenant &&
      !draining &&
      (queues === null || queues.has(queue.name)) &&
      ability.hasAllOf({ ...needs, tenant }),
  );
}

/** Tenants that a sentence names. */
const MOST_TENANTS = 3;

function describeOthers(sessions: readonly WorkerSession[], needs: Needs): string {
  const tenants = [...new Set(sessions.map(({ tenant }) => tenant))].sort();
  const more = tenants.length > MOST_TENANTS ? ` and ${tenants.length - MOST_TENANTS} more` : '';
  const whose = `tenant${tenants.length > 1 ? 's' : ''} ${tenants.slice(0, MOST_TENANTS).join(', ')}${more}`;
  const workers = sessions.length === 1 ? '1 such worker serves' : `${sessions.length} such workers serve`;
  return `${workers} this queue for ${whose} only; a shared worker, or one with --tenant ${needs.tenant}, would take it.`;
}

/** The rate limit of the workers themselves, if every fitting worker with a free slot is over its own. */
function explainWorkerRates(
  state: LeaderState,
  fitting: readonly WorkerSession[],
  figures: Figures,
  answer: Answer,
): Why | undefined {
  const now = state.clock.steady();
  const withRoom = fitting.filter((session) => session.freeSlots > 0);
  const opensAt = withRoom.map(({ bucket }) => (bucket && !bucket.isOpen(now) ? bucket.opensAt : now));
  const opensInMs = Math.ceil(least(opensAt) - now);
  if (opensInMs <= 0) return undefined;
  const next = `the next may start in ${humanDuration(opensInMs)}`;
  const detail = `The fitting workers start jobs at a limited rate of their own; ${next}.`;
  return answer('rate', detail, { ...figures, opensInMs });
}

/** For the next job of its queue: whether other queues and tenants come first. */
function explainShares(
  state: LeaderState,
  job: PlacedRow,
  share: QueueShare | undefined,
  fitting: readonly WorkerSession[],
  figures: Figures,
  answer: Answer,
): Why | undefined {
  const entry = state.backlog.find(job.id);
  if (!entry || share?.bestOf(entry.needs)?.head() !== entry) return undefined;
  const otherQueues = [...share.tenant.queues].filter((each) => each !== share && each.listed).length;
  const isShared = fitting.some((session) => session.tenant === null);
  const otherTenants = isShared ? state.shares.otherEligibleTenants(share.tenant) : 0;
  if (otherQueues + otherTenants === 0) {
    const detail = 'The fitting workers have free slots, but none of them is asking for a job at the moment.';
    return answer('no-free-slot', detail, figures);
  }
  const detail = 'It is next in its queue; other queues and tenants have their turn first.';
  const shares = { otherQueues, weight: share.info.weight, otherTenants, tenantWeight: share.tenant.weight };
  return answer('share', detail, { ...figures, ...shares });
}

/** The needs of the job from its row, because the job may not be in memory. */
function needsOf(job: PlacedRow): Needs {
  const target = job.target === null ? null : (JSON.parse(job.target) as Target);
  const handler = target === null ? (job.task ?? '') : target.type === 'handler' ? target.name : '';
  const labels = job.requires === null ? {} : (JSON.parse(job.requires) as Labels);
  return { tenant: job.tenant, target: target?.type ?? 'handler', handler, labels };
}
