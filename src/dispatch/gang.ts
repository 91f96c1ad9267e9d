import type { OnMemberFailure } from '../core/batch.js';
import type { OpenBatch } from '../store/batch-rows.js';
import type { Waiting } from '../store/read-backlog.js';
import type { Lack } from './gang-plan.js';
import type { HeldRoom } from './queue-share.js';
import type { Running } from './running.js';

/** Members of a gang that are all the same to choosing, but for their concurrency keys. */
export interface MemberKind {
  readonly queue: number;
  readonly needs: number;
  readonly members: readonly Waiting[];
}

/** The rates whose next tokens are kept for a gang: those of queues, and that of its tenant. */
export interface KeptRates {
  readonly queues: ReadonlySet<number>;
  readonly ofTenant: boolean;
}

export const NO_RATES: KeptRates = { queues: new Set(), ofTenant: false };

/** A batch that waits: one entry in choosing. */
export class Gang {
  readonly id: string;
  readonly tenant: string;
  readonly onFailure: OnMemberFailure;
  readonly dueAt: number;
  readonly startTimeoutMs: number | null;
  readonly kinds: readonly MemberKind[];
  /** The room that it needs in the limits of its queues. */
  readonly rooms: ReadonlyMap<number, HeldRoom>;
  /** What kept it from starting at the last plan. */
  lack: Lack | null = null;
  /** How many slots of each pool it is to have, by the keys of the pools, if it holds any. */
  target: ReadonlyMap<string, number> | null = null;
  keptRates = NO_RATES;
  /** Whether its start is in flight. */
  isStarting = false;
  /** Not to be started before this moment on the steady clock, because its last start failed or was taken back. */
  notBefore = Number.NEGATIVE_INFINITY;
  /** How often in a row its start has failed. */
  failedStarts = 0;

  constructor(
    batch: Pick<OpenBatch, 'id' | 'tenant' | 'onFailure' | 'dueAt' | 'startTimeoutMs'>,
    /** In the order in which they were submitted. */
    readonly members: readonly Waiting[],
    /** The members whose artifacts have not arrived: it cannot start before. */
    readonly awaits: Set<string> = new Set(),
  ) {
    this.id = batch.id;
    this.tenant = batch.tenant;
    this.onFailure = batch.onFailure;
    this.dueAt = batch.dueAt;
    this.startTimeoutMs = batch.startTimeoutMs;
    this.kinds = kindsOf(members);
    this.rooms = roomsOf(this.kinds);
  }

  /** The moment by which it must have started; null if it may wait for ever. */
  get startBy(): number | null {
    return this.startTimeoutMs === null ? null : this.dueAt + this.startTimeoutMs;
  }
}

function kindsOf(members: readonly Waiting[]): MemberKind[] {
  const kinds = new Map<string, MemberKind & { members: Waiting[] }>();
  for (const member of members) {
    const { queue, needs } = member;
    const kind = kinds.get(`${queue}/${needs}`);
    if (kind) kind.members.push(member);
    else kinds.set(`${queue}/${needs}`, { queue, needs, members: [member] });
  }
  return [...kinds.values()];
}

function roomsOf(kinds: readonly MemberKind[]): Map<number, HeldRoom> {
  const rooms = new Map<number, { jobs: number; keys: Map<string, number> }>();
  for (const { queue, members } of kinds) {
    const room = rooms.get(queue) ?? { jobs: 0, keys: new Map() };
    rooms.set(queue, room);
    room.jobs += members.length;
    for (const { key } of members) if (key !== null) room.keys.set(key, (room.keys.get(key) ?? 0) + 1);
  }
  return rooms;
}

/** The room that several gangs need together. */
export function sumOfRooms(gangs: readonly Gang[]): Map<number, HeldRoom> {
  const sums = new Map<number, { jobs: number; keys: Map<string, number> }>();
  for (const { rooms } of gangs) {
    for (const [queue, { jobs, keys }] of rooms) {
      const sum = sums.get(queue) ?? { jobs: 0, keys: new Map() };
      sums.set(queue, sum);
      sum.jobs += jobs;
      for (const [key, count] of keys) sum.keys.set(key, (sum.keys.get(key) ?? 0) + count);
    }
  }
  return sums;
}

/** When an attempt was handed over that nobody was handed yet. */
export const NEVER_HANDED = Number.NEGATIVE_INFINITY;

/** A batch that runs. */
export class GangRun {
  readonly id: string;
  readonly tenant: string;
  readonly onFailure: OnMemberFailure;
  /** The members whose ends have not been seen, by id; a missing attempt is not known to this leader. */
  readonly left = new Map<string, Running | null>();
  /** Members whose workers have promised never to start them. */
  readonly refused = new Set<string>();
  /** Whether a member ended otherwise than well. */
  hasFailed = false;
  isCancelled: boolean;
  /** Whether the rest of it was told to stop. */
  isStopped = false;
  /** Whether every member was handed over at least once. */
  isHandedOver = false;

  constructor(readonly batch: OpenBatch) {
    this.id = batch.id;
    this.tenant = batch.tenant;
    this.onFailure = batch.onFailure;
    this.isCancelled = batch.cancelledAt !== null;
  }

  /** Whether the rest is to stop: somebody cancelled it, or a member failed and the others shall not go on. */
  get isToStop(): boolean {
    return this.isCancelled || (this.hasFailed && this.onFailure === 'cancel-rest');
  }

  /** The members that were never handed over. */
  undelivered(): Running[] {
    if (this.isHandedOver) return [];
    const undelivered = [...this.left.values()].filter((running) => running?.handedAt === NEVER_HANDED);
    this.isHandedOver = undelivered.length === 0;
    return undelivered as Running[];
  }

  /** Whether its start can be taken back: no member can have begun, because none has ended, and each was never handed over or was refused. */
  get isUntouched(): boolean {
    if (this.left.size < this.batch.members.length) return false;
    for (const [id, running] of this.left) {
      // What somebody cancelled must not wait again.
      if (!running || running.cancelledAt !== null) return false;
      if (running.handedAt !== NEVER_HANDED && !this.refused.has(id)) return false;
    }
    return true;
  }
}
