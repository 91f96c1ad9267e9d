import type { Clock } from '../core/clock.js';
import type { ClaimAnswer, WorkerRegistration } from '../core/wire.js';
import type { NeedsInfo, QueueInfo } from './directory.js';
import type { Running } from './running.js';

/** A claim request that waits for work. */
export interface Poll {
  readonly session: WorkerSession;
  readonly max: number;
  readonly given: Running[];
  settle(answer: ClaimAnswer): void;
  settled: boolean;
}

/** One registration of a worker with this leader's shard. */
export class WorkerSession {
  readonly running = new Map<string, Running>();
  readonly polls = new Set<Poll>();
  /** When the worker was last heard of, as people read it. */
  lastSeen = 0;
  /** The same on the steady clock, for how long it has been silent. */
  heardAt = 0;
  draining = false;
  private readonly queueNames: ReadonlySet<string>;
  private readonly tasks: ReadonlySet<string>;
  private readonly targets: ReadonlySet<string>;
  private readonly fitting = new Map<number, boolean>();

  constructor(
    readonly id: string,
    readonly tenant: string,
    readonly registration: WorkerRegistration,
    readonly registeredAt: number,
    clock: Clock,
  ) {
    this.seen(clock);
    this.queueNames = new Set(registration.queues);
    this.tasks = new Set(registration.tasks);
    this.targets = new Set(registration.targets);
  }

  seen(clock: Clock): void {
    this.lastSeen = clock.now();
    this.heardAt = clock.steady();
  }

  serves(queue: QueueInfo): boolean {
    return queue.tenant === this.tenant && this.queueNames.has(queue.name);
  }

  /** Whether this worker has all that such jobs need; asked for every job, so it remembers. */
  fits(needs: NeedsInfo): boolean {
    let fits = this.fitting.get(needs.id);
    if (fits === undefined) {
      fits = this.hasAllOf(needs);
      this.fitting.set(needs.id, fits);
    }
    return fits;
  }

  get freeSlots(): number {
    return Math.max(0, this.registration.slots - this.running.size);
  }

  /** The same without remembering the answer. */
  hasAllOf(needs: Omit<NeedsInfo, 'id'>): boolean {
    if (needs.tenant !== this.tenant || !this.targets.has(needs.target)) return false;
    if (needs.target === 'handler' && !this.tasks.has(needs.handler)) return false;
    return Object.entries(needs.labels).every(([name, value]) => this.registration.labels[name] === value);
  }
}
