import { DEFAULT_QUEUE_LIMITS, DEFAULT_TENANT_LIMITS } from '../src/core/limits.js';
import type { QueueInfo, TenantInfo } from '../src/dispatch/directory.js';
import { Shares } from '../src/dispatch/shares.js';
import type { TestClock } from './test-clock.js';

/** Shares over queues that are made as they are asked for, whose limits a test changes as it likes. */
export class SharesForTests {
  readonly queues = new Map<number, QueueInfo>();
  readonly tenants = new Map<string, TenantInfo>();
  readonly shares: Shares;
  /** Needs that no worker can run. */
  readonly unserved = new Set<number>();

  constructor(clock: TestClock, onReady: () => void = () => undefined) {
    this.shares = new Shares({
      clock,
      queueInfo: (id) => this.queue(id),
      tenantInfo: (id) => this.tenants.get(id) ?? { ...DEFAULT_TENANT_LIMITS, fullAt: 0, debt: 0 },
      isServed: (needs) => !this.unserved.has(needs),
      onReady,
    });
    this.shares.join({ tenant: null, queues: null });
  }

  /** The queue with this id, of the default tenant unless it is set to be another's. */
  queue(id: number, change: Partial<QueueInfo> = {}): QueueInfo {
    const known = this.queues.get(id);
    const info = Object.assign(
      known ?? {
        id,
        tenant: 'default',
        name: `q${id}`,
        paused: false,
        fullAt: 0,
        debt: 0,
        ...DEFAULT_QUEUE_LIMITS,
      },
      change,
    );
    this.queues.set(id, info);
    return info;
  }
}
