import { type GangDecision, planGangs, type SlotPool, type Target } from '../src/dispatch/gang-plan.js';
import { makeRandom, type Random } from './oracle/random.js';

/**
 * A cluster in which gangs wait beside a flood of small jobs, on a clock of ticks. Who fits where, and what is possible, is
 * found out here slot by slot, in the simplest way. Workers die and come back, queues and keys have limits, members need
 * labels. The small jobs take every slot and all room that the plan leaves them.
 */

const AGEING = 5;
const LONGEST_SMALL = 6;
const LONGEST_GANG = 8;
const LABELS = ['a', 'b', 'c'];
const QUEUES = 3;
const KEYS = 2;

interface Worker {
  readonly labels: ReadonlySet<string>;
  readonly slots: number;
  isAlive: boolean;
  /** What it runs: until when, and the limits that it counts against. */
  running: { until: number; uses: readonly number[] }[];
}

interface Member {
  readonly labels: readonly string[];
  readonly uses: readonly number[];
}

interface Gang {
  readonly arrival: number;
  readonly members: readonly Member[];
  startedAt: number | null;
  target: Target | null;
}

/** What was wrong with a case; empty if nothing was. */
export function runGangCase(seed: number): string[] {
  const random = makeRandom(seed);
  return new GangCase(random).run();
}

class GangCase {
  private readonly workers: Worker[];
  private readonly limits: number[];
  private readonly running: number[];
  private readonly gangs: Gang[];
  private readonly hasDeaths: boolean;
  /** Every how many ticks a plan is made: between two of them targets and rooms stay as they are. */
  private readonly planEvery: number;
  private readonly wrong: string[] = [];
  private decisions = new Map<Gang, GangDecision>();

  constructor(private readonly random: Random) {
    const { between, oneIn } = random;
    this.workers = Array.from({ length: between(2, 6) }, () => ({
      labels: new Set(LABELS.filter(() => oneIn(2))),
      slots: between(1, 3),
      isAlive: true,
      running: [],
    }));
    const limit = () => (oneIn(2) ? Number.POSITIVE_INFINITY : between(1, 6));
    this.limits = Array.from({ length: QUEUES + KEYS }, limit);
    this.running = this.limits.map(() => 0);
    this.gangs = Array.from({ length: between(1, 5) }, () => this.makeGang()).sort(
      (a, b) => a.arrival - b.arrival,
    );
    this.hasDeaths = oneIn(3);
    this.planEvery = between(1, 2);
  }

  run(): string[] {
    const perGang = AGEING + this.planEvery + LONGEST_SMALL + LONGEST_GANG;
    const calmFrom = this.hasDeaths ? 60 : 0;
    const end = 20 + calmFrom + (this.gangs.length + 2) * perGang;
    for (let now = 0; now < end && !this.isDecided(now, calmFrom); now += 1) this.tick(now, now < calmFrom);
    for (const [i, gang] of this.gangs.entries()) this.judge(gang, i, calmFrom, perGang);
    return this.wrong;
  }

  /** Whether nothing that is judged can change any more. */
  private isDecided(now: number, calmFrom: number): boolean {
    const isOpen = (gang: Gang) =>
      gang.startedAt === null && (gang.arrival + AGEING > now || this.isPossible(gang));
    return now >= calmFrom && !this.gangs.some(isOpen);
  }

  private makeGang(): Gang {
    const { between, oneIn } = this.random;
    const queue = between(0, QUEUES - 1);
    const members = Array.from({ length: between(1, 6) }, () => {
      const own = oneIn(3) ? between(0, QUEUES - 1) : queue;
      const key = oneIn(4) ? [QUEUES + between(0, KEYS - 1)] : [];
      return { labels: LABELS.filter(() => oneIn(3)), uses: [own, ...key] };
    });
    return { arrival: between(0, 20), members, startedAt: null, target: null };
  }

  private tick(now: number, mayDie: boolean): void {
    for (const worker of this.workers) this.endJobs(worker, (until) => until <= now);
    if (mayDie && this.random.between(1, 100) <= 8) this.killOrRevive(this.random.pick(this.workers));
    if (now % this.planEvery === 0) this.plan(now);
    this.flood(now);
  }

  private endJobs(worker: Worker, isOver: (until: number) => boolean): void {
    for (const { until, uses } of worker.running)
      if (isOver(until)) for (const limit of uses) this.running[limit]! -= 1;
    worker.running = worker.running.filter(({ until }) => !isOver(until));
  }

  private killOrRevive(worker: Worker): void {
    worker.isAlive = !worker.isAlive;
    this.endJobs(worker, () => true);
    // As in a cluster: a plan follows at once, because pools have changed.
    this.decisions = new Map();
  }

  private plan(now: number): void {
    const waiting = this.gangs.filter(({ arrival, startedAt }) => arrival <= now && startedAt === null);
    const pools = this.pools();
    const plan = planGangs(
      waiting.map(function* ({ members, arrival, target }) {
        yield;
        return {
          groups: members.map((member) => ({ count: 1, pools: fitting(member, pools) })),
          uses: count(members.flatMap(({ uses }) => uses)),
          isAged: now >= arrival + AGEING,
          isOpen: true,
          opensSoon: true,
          target,
        };
      }),
      pools.map(({ workers }) => poolOf(workers)),
      this.limits.map((most, i) => ({ most, running: this.running[i]! })),
    );
    let step = plan.next();
    while (!step.done) step = plan.next();
    this.decisions = new Map(step.value.map((decision, i) => [waiting[i]!, decision]));
    for (const [gang, decision] of this.decisions) {
      gang.target = decision.kind === 'hold' ? decision.target : null;
      if (decision.kind === 'hold' && !this.isPossible(gang))
        this.wrong.push('an impossible gang holds slots');
      if (decision.kind === 'start') this.start(gang, decision, pools, now);
    }
  }

  private start(
    gang: Gang,
    { placement }: Extract<GangDecision, { kind: 'start' }>,
    pools: readonly Pool[],
    now: number,
  ): void {
    gang.startedAt = now;
    const until = now + this.random.between(1, LONGEST_GANG);
    let started = 0;
    for (const [index, { workers }] of pools.entries()) {
      for (const [group, members] of placement.membersIn(index)) {
        const member = gang.members[group]!;
        for (let i = 0; i < members; i += 1) {
          const worker = workers.find((each) => each.running.length < each.slots);
          if (!worker) this.wrong.push('a gang starts on a slot that is not free');
          else if (!fits(member, worker)) this.wrong.push('a member starts on a worker that it does not fit');
          else this.runOn(worker, until, member.uses);
          started += 1;
        }
      }
    }
    if (started !== gang.members.length) this.wrong.push('a part of a gang starts');
  }

  private runOn(worker: Worker, until: number, uses: readonly number[]): void {
    worker.running.push({ until, uses });
    for (const limit of uses) {
      this.running[limit]! += 1;
      if (this.running[limit]! > this.limits[limit]!) this.wrong.push('a limit is exceeded');
    }
  }

  /** Small jobs take what is free, beyond the targets of those who hold and within what they leave of the limits. */
  private flood(now: number): void {
    const holders = this.gangs.filter(({ target, startedAt }) => target !== null && startedAt === null);
    const heldRoom = this.limits.map(() => 0);
    for (const { members } of holders)
      for (const { uses } of members) for (const limit of uses) heldRoom[limit]! += 1;
    for (const [index, { workers }] of this.pools().entries()) {
      const held = holders.reduce((sum, { target }) => sum + (target!.get(index) ?? 0), 0);
      let spare = poolOf(workers).free - held;
      for (const worker of workers) {
        while (spare > 0 && worker.running.length < worker.slots) {
          const choices = [[0], [1], [2], [0, 3], [1, 4]].filter((uses) =>
            uses.every((limit) => this.running[limit]! + heldRoom[limit]! < this.limits[limit]!),
          );
          if (choices.length === 0) return;
          this.runOn(worker, now + this.random.between(1, LONGEST_SMALL), this.random.pick(choices));
          spare -= 1;
        }
      }
    }
  }

  /** Pools by labels, in an order that deaths do not change: targets refer to it. */
  private pools(): Pool[] {
    const pools = new Map<string, Pool>();
    for (const worker of this.workers) {
      const key = [...worker.labels].join();
      const pool = pools.get(key) ?? { labels: worker.labels, workers: [] };
      if (worker.isAlive) pool.workers.push(worker);
      pools.set(key, pool);
    }
    return [...pools.values()];
  }

  /** Slot by slot, with nothing else running: can every member have one, and do the limits allow it? */
  private isPossible({ members }: Gang): boolean {
    const uses = count(members.flatMap((member) => member.uses));
    if ([...uses].some(([limit, wanted]) => wanted > this.limits[limit]!)) return false;
    const slots = this.workers
      .filter(({ isAlive }) => isAlive)
      .flatMap((w) => Array(w.slots).fill(w) as Worker[]);
    const memberOf = new Map<number, Member>();
    const seat = (member: Member, seen: Set<number>): boolean =>
      slots.some((worker, slot) => {
        if (seen.has(slot) || !fits(member, worker)) return false;
        seen.add(slot);
        const other = memberOf.get(slot);
        if (other && !seat(other, seen)) return false;
        memberOf.set(slot, member);
        return true;
      });
    return members.every((member) => seat(member, new Set()));
  }

  private judge(gang: Gang, older: number, calmFrom: number, perGang: number): void {
    if (!this.isPossible(gang)) return;
    if (gang.startedAt === null) this.wrong.push('a gang that could start never did');
    else if (!this.hasDeaths && gang.startedAt > gang.arrival + (older + 1) * perGang)
      this.wrong.push(`a gang started ${gang.startedAt - gang.arrival} ticks after it came, behind ${older}`);
    else if (gang.startedAt > Math.max(gang.arrival, calmFrom) + (older + 1) * perGang)
      this.wrong.push('a gang started too late after the last death');
  }
}

interface Pool {
  readonly labels: ReadonlySet<string>;
  readonly workers: Worker[];
}

function poolOf(workers: readonly Worker[]): SlotPool {
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  return { slots, free: slots - workers.reduce((sum, worker) => sum + worker.running.length, 0) };
}

function fitting(member: Member, pools: readonly Pool[]): number[] {
  return pools.flatMap(({ labels }, index) =>
    member.labels.every((label) => labels.has(label)) ? [index] : [],
  );
}

function fits({ labels }: Member, worker: Worker): boolean {
  return worker.isAlive && labels.every((label) => worker.labels.has(label));
}

function count(limits: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const limit of limits) counts.set(limit, (counts.get(limit) ?? 0) + 1);
  return counts;
}
