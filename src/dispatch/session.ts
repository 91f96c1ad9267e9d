import type { Clock } from '../core/clock.js';
import { Bucket, rateOf } from '../core/rate.js';
import { ALL_QUEUES, type ClaimAnswer, type WorkerRegistration } from '../core/wire.js';
import { Ability } from './ability.js';
import type { Handed } from './assignment.js';
import type { QueueInfo } from './directory.js';
import { RunningList } from './running-list.js';

/** A claim request that waits for work. */
export interface Poll {
  readonly session: WorkerSession;
  readonly max: number;
  readonly given: Handed[];
  settle(answer: ClaimAnswer): void;
  /** Ends the wait without an answer. */
  fail(error: unknown): void;
  settled: boolean;
  /** Whether a job is being claimed for it in a way of its own; nobody else may give it one meanwhile. */
  reserved: boolean;
}

/** One registration of a worker with this leader's shard. */
export class WorkerSession {
  readonly running = new RunningList();
  readonly polls = new Set<Poll>();
  /** When the worker was last heard of, as people read it. */
  lastSeen = 0;
  /** The same on the steady clock, for how long it has been silent. */
  heardAt = 0;
  draining = false;
  /** Whose jobs it runs; null serves all tenants. */
  readonly tenant: string | null;
  /** The names of the queues it serves; null is every queue. */
  readonly queues: ReadonlySet<string> | null;
  /** Whether its assignments come with tokens. */
  readonly wantsTokens: boolean;
  /** Its own rate limit. It begins anew with every leader, which lets through one job more at most. */
  readonly bucket: Bucket | null;
  /** What it can run; the same object for all workers of its kind, because it may be large. */
  ability: Ability;
  readonly name: string;
  readonly slots: number;
  /** The length of the registration as it is stored. */
  readonly bytes: number;

  constructor(
    readonly id: string,
    /** Who registered it, and may speak for it. */
    readonly owner: string,
    /** JSON text of the registration, which is not kept: it may list thousands of tasks. */
    text: string,
    readonly registeredAt: number,
    clock: Clock,
  ) {
    this.seen(clock);
    const registration = JSON.parse(text) as WorkerRegistration;
    this.bytes = text.length;
    this.name = registration.name;
    this.slots = registration.slots;
    this.tenant = registration.shared ? null : owner;
    this.queues = registration.queues.includes(ALL_QUEUES) ? null : new Set(registration.queues);
    this.bucket = registration.rate ? Bucket.drained(rateOf(registration.rate), clock.steady()) : null;
    this.wantsTokens = registration.tokens !== false;
    this.ability = new Ability(this.tenant, registration);
  }

  seen(clock: Clock): void {
    this.lastSeen = clock.now();
    this.heardAt = clock.steady();
  }

  serves(queue: QueueInfo): boolean {
    return this.servesTenant(queue.tenant) && (this.queues === null || this.queues.has(queue.name));
  }

  servesTenant(tenant: string): boolean {
    return this.ability.servesTenant(tenant);
  }

  get freeSlots(): number {
    return Math.max(0, this.slots - this.running.size);
  }
}
