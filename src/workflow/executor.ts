import { EarliestTimer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { Loop, logFailure } from '../core/loop.js';
import { SerialQueue } from '../core/serial-queue.js';
import { eventOf, timedOut, type Waits } from '../core/workflow/waiting.js';
import type { EventOutcome } from '../core/workflow.js';
import { type Addition, addSteps } from '../store/add-steps.js';
import type { Queryable } from '../store/database.js';
import type { EndedStep } from '../store/ended-jobs.js';
import { type Keep, keepLast } from '../store/idempotency.js';
import { shareReach } from '../store/inner-workflows.js';
import { leaderTransaction, type TermKey } from '../store/leader-statement.js';
import { toWaiting } from '../store/read-backlog.js';
import {
  addEvent,
  nextWake,
  readWaitingSteps,
  readWoken,
  type WaitingStep,
  type WokenStep,
  type WorkflowEvent,
} from '../store/step-inputs.js';
import { type Made, takeRoomFor } from '../store/submit-jobs.js';
import {
  type Applied,
  applyPortion,
  type EndedUnrun,
  type EndedWorkflow,
  findOutbox,
  NO_CHANGE,
  type PendingEnd,
  type Portion,
  type ReadEdge,
  type ReadPortion,
  readOutbox,
  readOutboxOf,
  readPortion,
  type StepChange,
} from '../store/workflow-portions.js';
import { firstEdges, type Plan, planPortion } from './plan-portion.js';
import { eventResults, type Prepared, prepare, type Waiter } from './step-inputs.js';
import type { WorkflowLeader } from './workflow-leader.js';

/**
 * Edges of one statement, which takes some 25 ms then. With 1,000 a wide graph takes a tenth longer: after each statement its next
 * children wait until the process has handed over what was released.
 */
const MAX_EDGES = 2_500;
/** Ends of one statement. */
const MAX_ENDS = 1_000;
/** Workflows that are started before others have their turn: each may have ten thousand steps. */
const MAX_STARTS = 10;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
const EVERY_MS = 60_000;
/** When a workflow that could not be started is tried again. */
const AGAIN_MS = 1_000;

/**
 * Counts the ends of steps and lets run, or skips, those that wait for them. It alone writes steps, edges and workflows
 * after their submission, one portion after the other, and so does everybody else who changes a graph (`alone`): nothing
 * that it reads changes before it writes.
 *
 * It is given ends by those who wrote them. The table is read when a term begins, and when there were more than memory
 * holds: a cursor would miss what is committed late, and reading from the beginning passes all dead rows.
 */
export class WorkflowExecutor {
  /** Ends that are kept in memory; what is beyond that is read from the table. Tests make it small. */
  maxPending = 50_000;
  /** By step. */
  private readonly pending = new Map<string, PendingEnd>();
  /** Steps whose workflows could not be started. */
  private readonly failing = new Set<string>();
  /** Whether steps may have waited long enough. */
  private isWaking = true;
  /** Whether the table may hold ends that memory does not. */
  private isBehind = true;
  /** Set by the workflows: starts the workflow of a step, or answers how the step ends. */
  startInner: (step: WokenStep) => Promise<EndedUnrun | null> = async () => null;
  private readonly writes = new SerialQueue();
  private readonly loop: Loop;
  /** For steps that wait for a time. */
  private readonly timer: EarliestTimer;

  constructor(
    private readonly leader: WorkflowLeader,
    private readonly onStopping: () => void,
  ) {
    leader.noteSteps = (steps) => this.note(steps);
    leader.workflowMeters.endsPending = () => this.pending.size;
    this.timer = new EarliestTimer(leader.clock, () => this.wake());
    this.loop = new Loop({
      name: 'workflows',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(leader.log, 'ends of steps could not be counted'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer.stop();
    await this.loop.stop();
  }

  /** Looks for steps that have waited long enough. */
  wake(): void {
    this.isWaking = true;
    this.loop.wake();
  }

  /** Takes note of steps that have ended, after the commit. */
  note(steps: readonly EndedStep[]): void {
    if (steps.length === 0) return;
    for (const step of steps) {
      const known = this.pending.get(step.job);
      // It may have been read from the table and passed on in part before it is noted.
      if (known?.finishedAt !== step.finishedAt || known.place === null) this.add(notPassedOn(step));
    }
    this.loop.wake();
  }

  private add(end: PendingEnd): void {
    if (this.pending.size < this.maxPending) this.pending.set(end.job, end);
    else this.isBehind = true;
  }

  /** Runs something that changes graphs while nothing else does. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.writes.run(work);
  }

  /** Counts all ends that are known, and looks after steps that have waited long enough, in turn. */
  async runOnce(): Promise<void> {
    while (!this.leader.isOver && (this.isWaking || this.pending.size > 0 || this.isBehind)) {
      if (this.isWaking) await this.wakeSome();
      if (this.pending.size === 0 && this.isBehind) await this.readOn();
      if (this.pending.size > 0) await this.alone(() => this.countSome());
    }
  }

  /** Ends waits, and starts some workflows that are steps: each by itself, because it may have ten thousand steps. */
  private async wakeSome(): Promise<void> {
    this.isWaking = false;
    const starts = await this.alone(() => this.endWaits()).catch((error: unknown) => {
      this.isWaking = true;
      throw error;
    });
    for (const step of starts.slice(0, MAX_STARTS)) {
      if (this.leader.isOver) return;
      await this.alone(() => this.startOne(step));
      if (this.pending.size > 0) await this.alone(() => this.countSome());
    }
    if (starts.slice(MAX_STARTS).some(({ id }) => !this.failing.has(id))) this.isWaking = true;
  }

  /** A start that fails holds up nothing else, and is tried again. */
  private async startOne(step: WokenStep): Promise<void> {
    const { leader } = this;
    try {
      const end = await this.startInner(step);
      this.failing.delete(step.id);
      if (!end) return;
      const tenants = new Map([[step.workflow, step.tenant]]);
      await this.write({ ...NOTHING, ended: [end] }, tenants, leader.clock.now());
    } catch (error) {
      this.failing.add(step.id);
      leader.log.warn(
        { step: step.id, error: messageOf(error) },
        'the workflow of a step could not be started',
      );
      this.timer.arm(leader.clock.now() + AGAIN_MS);
    }
  }

  /** Reads ends from the beginning: those before were counted. What is noted meanwhile is in memory already. */
  private async readOn(): Promise<void> {
    this.isBehind = false;
    try {
      const ends = await readOutbox(this.leader.hot, BEFORE_ALL, MAX_ENDS);
      for (const end of ends) if (!this.pending.has(end.job)) this.add(end);
      if (ends.length === MAX_ENDS) this.isBehind = true;
    } catch (error) {
      this.isBehind = true;
      throw error;
    }
  }

  private async countSome(): Promise<void> {
    const ends: PendingEnd[] = [];
    // The edges of others after a long one would be read in vain.
    for (const end of this.pending.values()) if (ends.push(end) === MAX_ENDS || end.isLong) break;
    await this.count(ends);
  }

  /** Counts every end of a workflow that is committed, also what follows from it. To be called by those who are alone. */
  async drain(workflow: string): Promise<void> {
    for (;;) {
      const ends = await readOutboxOf(this.leader.hot, workflow, MAX_ENDS);
      if (ends.length === 0) return;
      await this.count(ends);
    }
  }

  /** Counts the first of the ends, as many as fit into one statement. */
  private async count(ends: readonly PendingEnd[]): Promise<void> {
    const { leader } = this;
    const read = await readPortion(leader.hot, ends, MAX_EDGES);
    const now = leader.clock.now();
    let plan = planPortion(ends, read, MAX_EDGES);
    let prepared = await this.prepare(plan, read, now);
    for (let first: ReadPortion = read; prepared.beyond !== null; ) {
      // Without the edges from the step on that did not fit; one that fits in no statement has one of its own. The step
      // may have edges of several ends: without the last one it does not run yet, and another one takes its bytes.
      const cut = Math.max(1, lastEdge(first.edges, prepared.beyond));
      first = firstEdges(read, cut);
      plan = planPortion(ends, first, cut);
      prepared = await this.prepare(plan, read, now);
    }
    const { taken, partly, counted, workflows } = plan;
    const steps = withPrepared(plan.steps, prepared);
    const portion = {
      counted,
      partly,
      workflows,
      steps,
      ...prepared,
      ended: [...plan.ended, ...prepared.ended],
    };
    const tenants = tenantsOf(read, ends);
    const applied = await this.write(portion, tenants, now);
    if (!applied.isOwn) return this.forgetCounted(taken);
    for (const { job } of taken) this.pending.delete(job);
    if (prepared.released.length > 0) this.measure(prepared, read.edges, ends, now);
    // At the end, so that one with thousands of children keeps nobody waiting.
    if (partly) this.add({ ...taken.at(-1)!, place: partly.place, isLong: taken.length === 1 });
    for (const { wakeAt } of prepared.waiting) this.timer.arm(wakeAt);
    if (workflows.some(({ stopping }) => stopping !== null)) this.onStopping();
  }

  /** How long after the last end that they waited for steps were released. */
  private measure(
    { released }: Prepared,
    edges: readonly ReadEdge[],
    ends: readonly PendingEnd[],
    now: number,
  ): void {
    const endedAt = new Map<string, number>();
    for (const { child, n } of edges)
      endedAt.set(child.id, Math.max(endedAt.get(child.id) ?? 0, ends[n - 1]!.finishedAt));
    for (const { id } of released) this.leader.workflowMeters.released(now - (endedAt.get(id) ?? now));
  }

  private prepare(plan: Plan, { workflows }: ReadPortion, now: number): Promise<Prepared> {
    const workflowOf = new Map(workflows.map((workflow) => [workflow.id, workflow]));
    const ready = plan.ready.map(({ id, delayMs, wait, inner, refers, workflow }) => {
      const { tenant, held } = workflowOf.get(workflow)!;
      return { id, delayMs, wait, inner, refers, workflow, tenant, held };
    });
    return prepare(this.leader, ready, now);
  }

  /** Writes a portion in the turns of the jobs that it lets run or ends. */
  private async write(
    portion: Portion,
    tenants: ReadonlyMap<string, string>,
    now: number,
    run: (write: (db: Queryable, term: TermKey) => Promise<Applied>) => Promise<Applied> = (write) =>
      this.leader.write(() => write(this.leader.hot, this.leader.term)),
  ): Promise<Applied> {
    const { leader } = this;
    const ids = [...portion.released, ...portion.ended].map(({ id }) => id).sort();
    const held: string[] = [];
    let applied: Applied;
    try {
      // Whoever has the turn of a blocked job is about to change or end it.
      for (const id of ids) {
        if (!leader.tryTurn(id)) await leader.turn(id);
        held.push(id);
      }
      applied = await run((db, term) => applyPortion(db, term, portion, now, leader.config.laterThreshold));
    } finally {
      for (const id of held) leader.turns.release(id);
    }
    if (applied.isOwn) {
      if (leader.events.isHeard) this.tellStopping(portion, applied, tenants);
      this.tell(applied.steps, applied.over, tenants);
      await leader.admitNew(applied.live);
    }
    return applied;
  }

  /**
   * Ends steps that have waited long enough, and lets those run again whose payloads are to be resolved. Answers with those
   * that are to start workflows, the ones that failed to do so last.
   */
  private async endWaits(): Promise<WokenStep[]> {
    const { leader } = this;
    const now = leader.clock.now();
    const woken = await readWoken(leader.hot, now, MAX_ENDS);
    const waits = woken.flatMap(({ id, workflow, wait }) =>
      wait === null ? [] : [{ id, workflow, wait: JSON.parse(wait) as Waits }],
    );
    const results = await eventResults(leader, waits);
    const again = woken.filter(({ wait, inner }) => wait === null && !inner);
    const starts = woken.filter(({ inner }) => inner);
    const prepared = await prepare(
      leader,
      again.map((step) => ({ ...step, delayMs: 0, refers: true, inner: false })),
      now,
    );
    const portion = {
      ...NOTHING,
      steps: prepared.released.map(({ id, parked }) => ({ ...NO_CHANGE, id, released: true, parked })),
      released: prepared.released,
      ended: [...waits.map((waiter) => endOfWait(waiter, results.get(waiter.id))), ...prepared.ended],
    };
    const tenants = new Map(woken.map(({ workflow, tenant }) => [workflow, tenant]));
    const done = woken.length > 0 ? await this.write(portion, tenants, now) : NOT_APPLIED;
    const isPart = woken.length === MAX_ENDS || prepared.beyond !== null;
    // Those whose jobs are gone are found again until their ends are counted.
    if (isPart && done.steps.length + done.live.length + done.postponed > 0) this.isWaking = true;
    this.timer.arm(await nextWake(leader.hot, now));
    return starts.sort((a, b) => Number(this.failing.has(a.id)) - Number(this.failing.has(b.id)));
  }

  /**
   * Keeps the first event of a name and ends the steps that wait for it; answers what became of it. To be called by those who are alone: an event
   * and a step that begins to wait at the same moment would miss each other.
   */
  async event(event: WorkflowEvent, tenant: string, keep?: Keep<EventOutcome>): Promise<EventOutcome> {
    const { leader } = this;
    const now = leader.clock.now();
    await this.drain(event.workflow);
    const waiting = await readWaitingSteps(leader.hot, event.workflow);
    const ended = waiting
      .filter(({ released, wait }) => released && eventOf(JSON.parse(wait) as Waits) === event.name)
      .map(({ id }): EndedUnrun => ({ id, state: 'succeeded', error: null, result: event.payload }));
    let outcome = outcomeOf(event.name, waiting, null);
    await this.write({ ...NOTHING, ended }, new Map([[event.workflow, tenant]]), now, (write) =>
      leader.write(() =>
        leaderTransaction(leader.hot, leader.term, async (db) => {
          const isFirst = await addEvent(db, leader.term, event, now);
          const applied = isFirst ? await write(db, leader.term) : NOT_APPLIED;
          outcome = outcomeOf(event.name, waiting, isFirst ? applied : null);
          await keepLast(db, keep, outcome);
          return applied;
        }),
      ),
    );
    return outcome;
  }

  /**
   * Stores steps that are added to a workflow, and ends those of them that are skipped. To be called by those who are alone
   * and have drained the workflow.
   */
  async addSteps(
    addition: Addition,
    /** The workflows that have the same reach. */
    family: readonly string[],
    skipped: readonly EndedUnrun[],
    made: Made,
    now: number,
  ): Promise<void> {
    const { leader } = this;
    const tenants = new Map([[addition.workflow, addition.tenant]]);
    await this.write({ ...NOTHING, ended: skipped }, tenants, now, (write) =>
      leader.write(() =>
        leaderTransaction(leader.hot, leader.term, async (db) => {
          // First, because it may wait, and what follows holds up the end of the attempt.
          await takeRoomFor(db, addition.steps, made);
          await addSteps(db, leader.term, addition, made.names, now);
          await shareReach(
            db,
            leader.term,
            family.filter((id) => id !== addition.workflow),
            addition,
          );
          return skipped.length > 0 ? write(db, leader.term) : NOT_APPLIED;
        }),
      ),
    );
    const live = addition.steps.filter(({ admitAt }) => admitAt === null);
    const waiting = live.map(({ row }) => toWaiting(row));
    await leader.admit(waiting);
    if (leader.events.isHeard) leader.events.submitted(waiting);
    if (addition.steps.some(({ wakeAt }) => wakeAt !== null)) this.wake();
  }

  /** Workflows that stop and have not ended with the same portion. */
  private tellStopping(
    { workflows }: Portion,
    { over }: Applied,
    tenants: ReadonlyMap<string, string>,
  ): void {
    for (const { id, stopping } of workflows) {
      if (stopping === null || over.some((ended) => ended.id === id)) continue;
      this.leader.events.workflow('workflow.stopping', { id, tenant: tenants.get(id)! }, 'running', stopping);
    }
  }

  private tell(
    steps: readonly EndedStep[],
    over: readonly EndedWorkflow[],
    tenants: ReadonlyMap<string, string>,
  ): void {
    const { leader } = this;
    if (steps.length > 0) {
      const ended = steps.map(({ job, state, workflow }) => ({
        ...{ id: job, tenant: tenants.get(workflow)!, state, workflow },
      }));
      leader.ended(ended);
      if (leader.events.isHeard) leader.events.endedWaiting(ended);
      this.note(steps);
    }
    if (over.length === 0) return;
    leader.ended(over);
    const now = leader.clock.now();
    for (const { createdAt } of over) leader.workflowMeters.ended(now - createdAt);
    if (leader.events.isHeard)
      for (const workflow of over)
        leader.events.workflow(`workflow.${workflow.state}`, workflow, workflow.state);
  }

  /** An end was counted before; that happens to one that was read from the table while it was being noted. */
  private async forgetCounted(ends: readonly PendingEnd[]): Promise<void> {
    const left = await findOutbox(
      this.leader.hot,
      ends.map(({ job }) => job),
    );
    for (const { job } of ends) if (!left.has(job)) this.pending.delete(job);
    this.leader.log.debug({ ends: ends.length, left: left.size }, 'ends of steps were counted before');
  }
}

/** Written out: there may be thousands. */
function notPassedOn({ job, workflow, state, finishedAt }: EndedStep): PendingEnd {
  return { job, workflow, state, finishedAt, place: null };
}

/** A portion that counts nothing. */
const NOTHING: Portion = { counted: [], partly: null, steps: [], released: [], ended: [], workflows: [] };
const NOT_APPLIED: Applied = { isOwn: false, live: [], postponed: 0, steps: [], over: [] };

/** The tenants of workflows, and of those around and inside them. */
function tenantsOf({ workflows, sources }: ReadPortion, ends: readonly PendingEnd[]): Map<string, string> {
  const tenants = new Map<string, string>();
  for (const { id, outerWorkflow, tenant } of workflows) {
    tenants.set(id, tenant);
    if (outerWorkflow !== null) tenants.set(outerWorkflow, tenant);
  }
  const inner = new Map(
    sources.flatMap(({ id, innerRunning }) => (innerRunning ? [[id, innerRunning]] : [])),
  );
  if (inner.size === 0) return tenants;
  for (const { job, workflow } of ends) {
    const running = inner.get(job);
    if (running) tenants.set(running, tenants.get(workflow)!);
  }
  return tenants;
}

/** The most other events of a workflow that are named. */
const MOST_AWAITED = 20;

/** What became of an event; `applied` is null if one of its name had come before. */
function outcomeOf(name: string, waiting: readonly WaitingStep[], applied: Applied | null): EventOutcome {
  const awaited = new Set(waiting.flatMap(({ wait }) => eventOf(JSON.parse(wait) as Waits) ?? []));
  const expected = awaited.delete(name);
  const ended = new Set(applied?.steps.map(({ job }) => job));
  return {
    name,
    completed: waiting.filter(({ id }) => ended.has(id)).map((step) => step.name),
    repeated: applied === null,
    expected,
    awaited: [...awaited].sort().slice(0, MOST_AWAITED),
  };
}

/** How a step ends that has waited long enough: its event may have come before it began to wait. */
function endOfWait({ id, wait }: Waiter, result: string | undefined): EndedUnrun {
  if (eventOf(wait) === null || result !== undefined)
    return { id, state: 'succeeded', error: null, result: result ?? null };
  return { id, state: 'failed', error: JSON.stringify(timedOut(wait)), result: null };
}

/** How many edges come before the last one of a step. */
function lastEdge(edges: readonly ReadEdge[], step: string): number {
  for (let i = edges.length - 1; i >= 0; i--) if (edges[i]!.child.id === step) return i;
  return edges.length;
}

/** The changes of steps with when they wake, and whether they only wait for their workflow. */
function withPrepared(steps: readonly StepChange[], { waiting, released }: Prepared): readonly StepChange[] {
  if (waiting.length === 0 && !released.some(({ parked }) => parked)) return steps;
  const wakeAts = new Map(waiting.map(({ id, wakeAt }) => [id, wakeAt]));
  const parked = new Map(released.map((step) => [step.id, step.parked]));
  return steps.map((step) => ({
    ...step,
    wakeAt: wakeAts.get(step.id) ?? null,
    parked: parked.get(step.id) ?? null,
  }));
}
