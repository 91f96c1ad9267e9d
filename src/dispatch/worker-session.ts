import { areWithin, type KeyLimits } from '../core/access.js';
import type { Clock } from '../core/clock.js';
import { Bucket, rateOf } from '../core/rate.js';
import { ALL_QUEUES, type ClaimAnswer, type WorkerRegistration } from '../core/wire.js';
import { Ability } from './ability.js';
import type { Handed } from './assignment.js';
import type { QueueInfo } from './directory.js';
import { RunningList } from './running-list.js';

/** Who speaks for a worker: as much of a caller as decides about its sessions. */
export interface SessionUser {
  readonly tenant: string;
  readonly operator: boolean;
  readonly key?: { readonly limits?: KeyLimits };
}

/** A claim request that waits for work. */
export interface Poll {
  readonly session: WorkerSession;
  readonly max: number;
  /** What its tokens are restricted to: what both the session and the key of the request are; null if neither is. */
  readonly limits: KeyLimits | null;
  readonly given: Handed[];
  /** Whether the key of the request is certainly still valid; a promise while the key is being read again. */
  isWelcome(): boolean | Promise<boolean>;
  settle(answer: ClaimAnswer): void;
  /** Ends the wait without an answer. */
  fail(error: unknown): void;
  settled: boolean;
  /** Whether a job is being claimed or read for it; it must not be given another one meanwhile. */
  reserved: boolean;
  /** Whether jobs were claimed for it that it gets as soon as it is known to be welcome. */
  isChecked: boolean;
}

/** Whether a poll can be given jobs. */
export function isFree({ settled, reserved, isChecked }: Poll): boolean {
  return !settled && !reserved && !isChecked;
}

/** A registration as it is stored: with what its key is restricted to. */
export interface StoredRegistration extends WorkerRegistration {
  readonly limits?: KeyLimits;
}

/** One registration of a worker with this leader's shard. */
export class WorkerSession {
  readonly running = new RunningList();
  readonly polls = new Set<Poll>();
  /** When the worker was last heard of, on the database's clock. */
  lastSeen = 0;
  /** The same on the steady clock, for how long it has been silent. */
  heardAt = 0;
  /** False for a session of an earlier term that this leader has not heard of: its worker may be long dead. */
  isHeard = true;
  draining = false;
  /** Whose jobs it runs; null serves all tenants. */
  readonly tenant: string | null;
  /** Whether it belongs to the operator; else it belongs to the tenant whose jobs it runs. */
  readonly operator: boolean;
  /** The names of the queues it serves; null is every queue. */
  readonly queues: ReadonlySet<string> | null;
  /** Whether its assignments come with tokens. */
  readonly wantsTokens: boolean;
  /** What the key is restricted to that it was registered with; null if it is not. */
  readonly limits: KeyLimits | null;
  /**
   * Its own rate limit. It begins with one token under every leader, so a takeover lets at most one extra job start.
   */
  readonly bucket: Bucket | null;
  /** What it can run; workers with equal abilities share the object, because it may be large. */
  ability: Ability;
  readonly name: string;
  readonly slots: number;
  /** The length of the registration as it is stored. */
  readonly bytes: number;
  private cachedPoolKey: string | undefined;

  constructor(
    readonly id: string,
    /** The tenant it was registered for; of no meaning for one that serves all tenants. */
    registeredFor: string,
    /** JSON text of the registration. It is not kept, because it may list thousands of tasks. */
    text: string,
    readonly registeredAt: number,
    clock: Clock,
    /** Whether it was registered with an operator's key. */
    operator = false,
  ) {
    this.seen(clock);
    const registration = JSON.parse(text) as StoredRegistration;
    this.bytes = text.length;
    this.name = registration.name;
    this.slots = registration.slots;
    // Only operators may register one that is shared.
    this.tenant = registration.shared ? null : registeredFor;
    this.operator = operator || this.tenant === null;
    this.queues = registration.queues.includes(ALL_QUEUES) ? null : new Set(registration.queues);
    this.bucket = registration.rate ? Bucket.drained(rateOf(registration.rate), clock.steady()) : null;
    this.wantsTokens = registration.tokens !== false;
    this.limits = registration.limits ?? null;
    this.ability = new Ability(this.tenant, registration);
  }

  /**
   * Whether somebody may speak for it: operators for their own sessions, a tenant for its own, and nobody with a key for
   * less than what the session may receive. An operator who acts for a tenant may speak for that tenant's sessions.
   */
  isOf({ tenant, operator, key }: SessionUser): boolean {
    if (this.operator && !operator) return false;
    if (this.tenant !== null && this.tenant !== tenant) return false;
    return !key?.limits || areWithin(this.reach, key.limits);
  }

  private get reach(): KeyLimits {
    const { targets, tasks } = this.ability;
    // Jobs for other targets come whatever their tasks are.
    const hasHandlersOnly = targets.size === 1 && targets.has('handler');
    return { queues: this.queues && [...this.queues], tasks: hasHandlersOnly ? [...tasks] : null };
  }

  /** Notes a sign of life. */
  seen(clock: Clock): void {
    this.lastSeen = clock.now();
    this.heardAt = clock.steady();
    this.isHeard = true;
  }

  serves(queue: QueueInfo): boolean {
    return this.servesTenant(queue.tenant) && (this.queues === null || this.queues.has(queue.name));
  }

  servesTenant(tenant: string): boolean {
    return this.ability.servesTenant(tenant);
  }

  /** Equal for workers that can run the same jobs: of the same ability, and serving queues of the same names. */
  get poolKey(): string {
    this.cachedPoolKey ??= `${this.ability.key} ${this.queues === null ? '*' : [...this.queues].sort().join()}`;
    return this.cachedPoolKey;
  }

  get freeSlots(): number {
    return Math.max(0, this.slots - this.running.size);
  }
}
