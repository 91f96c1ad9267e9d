import type { Clock } from '../core/clock.js';
import type { EndedJob } from '../store/ended-jobs.js';
import { type Gang, GangRun } from './gang.js';
import type { Running } from './running.js';
import type { WorkerSession } from './worker-session.js';

/** The most members of waiting gangs in memory; younger batches stay in the table until older ones have left. */
const MAX_MEMBERS_IN_MEMORY = 100_000;

/** Slots of a pool that small jobs may take. */
export interface Spare {
  left: number;
}

/** What those who look after gangs want to hear. */
export interface GangListener {
  /** Something has changed that gangs may wait for. */
  wake(): void;
  /** Members have ended, and their gangs know it. */
  ended(gangs: ReadonlySet<Gang | GangRun>): void;
  /** Attempts that never began, and never will. */
  givenUp(members: readonly Running[]): Promise<void>;
}

/**
 * The batches of a term in memory: those that wait, by age, what they hold, and those that run. While there is none, every
 * question to it is one look at a field.
 */
export class GangBoard {
  /** Those that are due, the oldest first. */
  readonly waiting: Gang[] = [];
  /** Those that are not due yet, in the order in which they will be. */
  private readonly early: Gang[] = [];
  /** Those with members whose artifacts have not arrived. */
  readonly unready: Gang[] = [];
  readonly running = new Map<string, GangRun>();
  /** Whether younger batches wait in the table only. */
  hasMore = false;
  /** How many slots of each pool are held, by the keys of the pools. */
  held: ReadonlyMap<string, number> = new Map();
  /** Set by those who look after gangs. */
  listener: GangListener | null = null;
  private readonly waitingById = new Map<string, Gang>();
  private readonly byMember = new Map<string, Gang | GangRun>();
  private members = 0;
  /** How many waiting gangs use a queue or needs. */
  private readonly queues = new Map<number, number>();
  private readonly needs = new Map<number, number>();

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    readonly mostMembers = MAX_MEMBERS_IN_MEMORY,
  ) {}

  /** Whether any gang waits that is due. */
  get isWaiting(): boolean {
    return this.waiting.length > 0;
  }

  /** How many gangs wait, those included that are not due yet. */
  get waitingCount(): number {
    return this.waitingById.size;
  }

  /** When the next gang becomes due; null if all are. */
  get nextDueAt(): number | null {
    return this.early[0]?.dueAt ?? null;
  }

  /** Whether any gang waits or runs. */
  get isInUse(): boolean {
    return this.byMember.size > 0;
  }

  /** Whether no further gang is taken into memory. */
  get isFull(): boolean {
    return this.members >= this.mostMembers;
  }

  /** Something has changed that gangs may wait for: slots, workers, limits. */
  changed(): void {
    if (this.waiting.length > 0) this.listener?.wake();
  }

  find(id: string): Gang | GangRun | undefined {
    return this.running.get(id) ?? this.waitingById.get(id);
  }

  /** The gang that the job is a member of. */
  of(jobId: string): Gang | GangRun | undefined {
    return this.byMember.size === 0 ? undefined : this.byMember.get(jobId);
  }

  runOf(jobId: string): GangRun | undefined {
    const gang = this.of(jobId);
    return gang instanceof GangRun ? gang : undefined;
  }

  /** Adds a gang that waits. */
  add(gang: Gang): void {
    this.place(gang);
    this.waitingById.set(gang.id, gang);
    for (const { id } of gang.members) this.byMember.set(id, gang);
    this.count(gang, 1);
    this.listener?.wake();
  }

  private place(gang: Gang): void {
    if (gang.awaits.size > 0) insert(this.unready, gang);
    else insert(gang.dueAt <= this.clock.now() ? this.waiting : this.early, gang);
  }

  /** The artifact of a member has arrived. */
  arrived(id: string, member: string): void {
    const gang = this.waitingById.get(id);
    if (!gang?.awaits.delete(member) || gang.awaits.size > 0) return;
    this.unready.splice(this.unready.indexOf(gang), 1);
    this.place(gang);
    this.listener?.wake();
  }

  /** Moves gangs that have become due to those that are. */
  takeDue(): void {
    const now = this.clock.now();
    const due = this.early.findIndex(({ dueAt }) => dueAt > now);
    const taken = this.early.splice(0, due < 0 ? this.early.length : due);
    for (const gang of taken) insert(this.waiting, gang);
    if (taken.length > 0) this.listener?.wake();
  }

  /** Removes a gang that waits no more; answers false if it was not there. */
  remove(gang: Gang): boolean {
    if (this.waitingById.get(gang.id) !== gang) return false;
    this.waitingById.delete(gang.id);
    for (const gangs of [this.waiting, this.early, this.unready]) {
      const index = gangs.indexOf(gang);
      if (index >= 0) gangs.splice(index, 1);
    }
    for (const { id } of gang.members) if (this.byMember.get(id) === gang) this.byMember.delete(id);
    this.count(gang, -1);
    this.listener?.wake();
    return true;
  }

  private count({ members, kinds }: Gang, sign: 1 | -1): void {
    this.members += sign * members.length;
    for (const { queue, needs } of kinds) {
      add(this.queues, queue, sign);
      add(this.needs, needs, sign);
    }
  }

  /** Whether a waiting gang has members in the queue. */
  usesQueue(queue: number): boolean {
    return this.queues.has(queue);
  }

  /** Whether a waiting gang has members with such needs. */
  usesNeeds(needs: number): boolean {
    return this.needs.has(needs);
  }

  /** Adds a gang that runs. */
  begin(run: GangRun): void {
    this.running.set(run.id, run);
    for (const id of run.left.keys()) this.byMember.set(id, run);
  }

  /** Forgets a gang that runs no more. */
  forget(run: GangRun): void {
    this.running.delete(run.id);
    for (const id of run.left.keys()) if (this.byMember.get(id) === run) this.byMember.delete(id);
  }

  /** Notes which members have ended. */
  noteEnds(jobs: readonly EndedJob[]): void {
    const gangs = new Set<Gang | GangRun>();
    for (const { id, state } of jobs) {
      const gang = this.byMember.get(id);
      if (!gang) continue;
      gangs.add(gang);
      this.byMember.delete(id);
      if (!(gang instanceof GangRun)) continue;
      gang.left.delete(id);
      if (state !== 'succeeded') gang.hasFailed = true;
    }
    if (gangs.size > 0) this.listener?.ended(gangs);
  }

  /** The slots that small jobs may take of each pool that gangs hold slots of, by the keys of the pools; null if none is held. */
  spareSlots(sessions: Iterable<WorkerSession>, now: number): ReadonlyMap<string, Spare> | null {
    if (this.held.size === 0) return null;
    const spare = new Map([...this.held].map(([key, held]) => [key, { left: -held }]));
    for (const session of sessions) {
      const pool = session.draining ? undefined : spare.get(session.poolKey);
      if (pool) pool.left += freeSlotsOf(session, now);
    }
    return spare;
  }

  /** The free slots that small jobs may not take. */
  slotsKept(sessions: Iterable<WorkerSession>, now: number): number {
    if (this.held.size === 0) return 0;
    const free = new Map<string, number>();
    for (const session of sessions) {
      if (session.draining || !this.held.has(session.poolKey)) continue;
      free.set(session.poolKey, (free.get(session.poolKey) ?? 0) + freeSlotsOf(session, now));
    }
    return [...free].reduce((sum, [key, count]) => sum + Math.min(count, this.held.get(key)!), 0);
  }

  /** Whether the attempt is that of a gang none of whose members can have begun. */
  isUntouched(running: Running): boolean {
    return this.runOf(running.id)?.isUntouched === true;
  }
}

/**
 * The slots of a worker that a job could start on now; jobs may be on their way to polls that are reserved. A worker that
 * this leader has not heard of has none: where leaders change more often than sessions time out, it may be long dead.
 */
export function freeSlotsOf(session: WorkerSession, now: number): number {
  const { slots, running, polls, bucket, isHeard } = session;
  if (!isHeard || (bucket && !bucket.isOpen(now))) return 0;
  let free = slots - running.size;
  for (const { reserved } of polls) if (reserved) free -= 1;
  return Math.max(0, free);
}

function add(counts: Map<number, number>, name: number, change: number): void {
  const count = (counts.get(name) ?? 0) + change;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

/** Most gangs that come are the youngest so far. */
function insert(gangs: Gang[], gang: Gang): void {
  let index = gangs.length;
  while (index > 0 && isOlder(gang, gangs[index - 1]!)) index -= 1;
  gangs.splice(index, 0, gang);
}

/** By age: the one that was due first. */
function isOlder(a: Gang, b: Gang): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.id < b.id);
}
