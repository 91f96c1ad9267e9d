import { Loop, logFailure } from '../core/loop.js';
import { TimeSlice } from '../core/time-slice.js';
import type { Waiting } from '../store/read-backlog.js';
import { type Gang, type KeptRates, NO_RATES, sumOfRooms } from './gang.js';
import { freeSlotsOf } from './gang-board.js';
import type { Placement } from './gang-placement.js';
import { type GangDecision, type Pausing, planGangs } from './gang-plan.js';
import { GangSurvey, SOON_MS } from './gang-survey.js';
import type { LeaderState } from './leader-state.js';
import type { WorkerSession } from './worker-session.js';

/** How often a plan is made while gangs wait and nothing tells that something has changed. */
const EVERY_MS = 1_000;
/** The least pause between two plans, and the part of the time that plans may take. */
const PAUSE_MS = 5;
const PLANNING_SHARE = 0.2;

/** A gang that can start, by a plan that may be outdated. */
interface ReadyGang {
  readonly gang: Gang;
  readonly placement: Placement;
  readonly survey: GangSurvey;
}

/** A gang that starts now: each member with its worker. */
export interface GangStart {
  readonly gang: Gang;
  readonly places: readonly { readonly member: Waiting; readonly session: WorkerSession }[];
}

/**
 * Plans which gangs start and what the others hold, whenever something has changed that they may wait for. A plan is made
 * in slices, and workers and limits may change meanwhile; so what it says is checked again at the start, and what is held
 * is said by pool: it stays right when slots come and go.
 */
export class GangPlanner {
  private readonly loop: Loop;
  private ready: ReadyGang[] = [];
  private nextPlanAt = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly state: LeaderState) {
    this.loop = new Loop({
      name: 'gangs',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'batches could not be planned'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    clearTimeout(this.timer);
    await this.loop.stop();
  }

  /** Makes a plan soon. However much happens, plans take a bounded part of the time. */
  wake(): void {
    if (this.timer) return;
    const pause = this.nextPlanAt - performance.now();
    if (pause <= 0) this.loop.wake();
    else
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.loop.wake();
      }, pause).unref();
  }

  /** Whether a gang may be able to start. */
  get hasReady(): boolean {
    return this.ready.length > 0;
  }

  /** Makes a plan; answers with the pause until the next one is needed at the latest. */
  async runOnce(): Promise<number> {
    const { state } = this;
    const now = state.clock.now();
    state.gangs.takeDue();
    if (!state.gangs.isWaiting || state.paused) {
      this.ready = [];
      this.applyHolds();
      return Math.min(EVERY_MS, this.untilNextDue(now));
    }
    const survey = new GangSurvey(state);
    const steady = state.clock.steady();
    const gangs = state.gangs.waiting.filter(
      ({ dueAt, notBefore, isStarting }) => dueAt <= now && notBefore <= steady && !isStarting,
    );
    const isAged = ({ dueAt }: Gang) => now - dueAt >= state.config.batchAgeing;
    const wanted = gangs.map((gang) => survey.gang(gang, isAged(gang)));
    const decisions = await this.inSlices(planGangs(wanted, survey.pools, survey.limits));
    if (state.isOver) return EVERY_MS;
    this.carryOut(gangs, decisions, survey);
    return this.pause(survey, now);
  }

  /** Takes a gang that can start at this moment, if there is one. */
  take(): GangStart | null {
    for (let ready = this.ready.shift(); ready; ready = this.ready.shift()) {
      const start = this.state.paused ? null : this.placesOf(ready);
      if (start) return start;
      // Small jobs or other gangs were faster.
      this.wake();
    }
    return null;
  }

  /** Holds what the targets of the waiting gangs say. Must be called after a change of them. */
  applyHolds(): void {
    const { state } = this;
    const held = new Map<string, number>();
    const reserved = { queues: new Set<number>(), tenants: new Set<string>() };
    const holders = state.gangs.waiting.filter(({ target }) => target !== null);
    for (const gang of holders) {
      for (const [key, count] of gang.target!) held.set(key, (held.get(key) ?? 0) + count);
    }
    for (const { tenant, keptRates } of state.gangs.waiting) {
      for (const queue of keptRates.queues) reserved.queues.add(queue);
      if (keptRates.ofTenant) reserved.tenants.add(tenant);
    }
    state.gangs.held = held;
    state.shares.hold(sumOfRooms(holders));
    state.shares.reserveRates(reserved.queues, reserved.tenants);
  }

  /** Runs work to its end, and lets the event loop turn when that takes long. */
  private async inSlices<T>(work: Pausing<T>): Promise<T> {
    const slice = new TimeSlice();
    let spent = 0;
    for (;;) {
      const startedAt = performance.now();
      let step = work.next();
      while (!step.done && !slice.isOver) step = work.next();
      spent += performance.now() - startedAt;
      this.nextPlanAt = performance.now() + Math.max(PAUSE_MS, spent / PLANNING_SHARE);
      if (step.done) return step.value;
      await slice.next();
    }
  }

  private carryOut(gangs: readonly Gang[], decisions: readonly GangDecision[], survey: GangSurvey): void {
    const { state } = this;
    this.ready = [];
    const keyOf = (pool: number) => survey.pools[pool]!.key;
    for (const [i, gang] of gangs.entries()) {
      const decision = decisions[i]!;
      // Its start may have begun while the plan was made.
      if (gang.isStarting) continue;
      gang.lack = decision.kind === 'start' ? null : decision.lack;
      gang.keptRates = ratesToKeep(gang, decision, survey);
      const target =
        decision.kind === 'start'
          ? decision.placement.used
          : decision.kind === 'hold'
            ? decision.target
            : null;
      gang.target = target && new Map([...target].map(([pool, count]) => [keyOf(pool), count]));
      if (decision.kind === 'start') this.ready.push({ gang, placement: decision.placement, survey });
    }
    this.applyHolds();
    if (this.hasReady) state.wakeClaiming();
  }

  /** When a gang becomes due, has aged, or may start by the rates: the next plan must not come later. */
  private pause(survey: GangSurvey, now: number): number {
    const { clock, config, gangs } = this.state;
    const steady = clock.steady();
    let next = Math.min(EVERY_MS, this.untilNextDue(now));
    const expect = (inMs: number) => {
      if (inMs > 0) next = Math.min(next, Math.ceil(inMs));
    };
    for (const gang of gangs.waiting) {
      expect(gang.dueAt - now);
      expect(gang.dueAt + config.batchAgeing - now);
      expect(gang.notBefore - steady);
      const opensIn = survey.opensAt(gang) - steady;
      expect(opensIn);
      expect(opensIn - SOON_MS);
    }
    return next;
  }

  private untilNextDue(now: number): number {
    const { nextDueAt } = this.state.gangs;
    return nextDueAt === null ? Number.POSITIVE_INFINITY : Math.max(1, Math.ceil(nextDueAt - now));
  }

  /** Gives each member a worker as things are now; null if they do not allow it any more. */
  private placesOf({ gang, placement, survey }: ReadyGang): GangStart | null {
    const { state } = this;
    if (gang.isStarting || state.gangs.find(gang.id) !== gang) return null;
    const now = state.clock.steady();
    const limits = new GangSurvey(state, now);
    if (limits.opensAt(gang) > now) return null;
    for (const [index, count] of limits.usesOf(gang)) {
      const { most, running } = limits.limits[index]!;
      if (running + count > most) return null;
    }
    const places: { member: Waiting; session: WorkerSession }[] = [];
    const taken = gang.kinds.map(() => 0);
    for (const [pool, count] of placement.used) {
      const sessions = this.spread(survey.pools[pool]!.sessions, count, now);
      if (sessions === null) return null;
      for (const [kind, members] of placement.membersIn(pool)) {
        for (let i = 0; i < members; i += 1) {
          places.push({ member: gang.kinds[kind]!.members[taken[kind]!]!, session: sessions.pop()! });
          taken[kind]! += 1;
        }
      }
    }
    return { gang, places };
  }

  /** Free slots of these workers, one of each in turn; null if there are not so many. */
  private spread(sessions: readonly WorkerSession[], count: number, now: number): WorkerSession[] | null {
    const { state } = this;
    const free = sessions
      .filter((session) => state.sessions.has(session.id) && !session.draining)
      .map((session) => ({ session, left: freeSlotsOf(session, now) }));
    const spread: WorkerSession[] = [];
    for (let before = -1; before < spread.length && spread.length < count; ) {
      before = spread.length;
      for (const each of free) {
        if (each.left === 0 || spread.length === count) continue;
        each.left -= 1;
        spread.push(each.session);
      }
    }
    return spread.length === count ? spread : null;
  }
}

/** Tokens are kept once nothing but the rates is missing, and from then on until the gang starts. */
function ratesToKeep(gang: Gang, decision: GangDecision, survey: GangSurvey): KeptRates {
  if (decision.kind === 'wait') return NO_RATES;
  if (decision.kind === 'start' || decision.lack.kind !== 'rate') return gang.keptRates;
  return survey.ratesToKeep(gang);
}
