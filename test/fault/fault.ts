import type { FaultRecord } from './history.js';
import type { Random } from './random.js';
import type { Scene } from './scene.js';

/**
 * Faults of one lane follow each other, those of different lanes overlap: a worker may die during a failover, but
 * of three nodes one is always left.
 */
export type Lane = 'nodes' | 'links' | 'database' | 'workers' | 'reports' | 'receiver' | 'load';

/** What a fault did, as far as observers saw it. */
export type Injected = Omit<FaultRecord, 'kind' | 'from' | 'to'>;

/** One kind of fault. A file in `faults/` that exports one as `fault` joins its scenario and `mixed` by itself. */
export interface Fault {
  readonly kind: string;
  readonly scenario: string;
  readonly lane: Lane;
  /** Breaks something, waits, repairs it; what only the scheduler can recover is left to it. */
  inject(scene: Scene, random: Random): Promise<Injected>;
}
