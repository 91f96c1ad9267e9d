import type { Directory } from './directory.js';
import type { WorkerSession } from './session.js';

/**
 * How many workers can run jobs of which needs. Jobs that nobody can run do not take turns: however many kinds
 * of them there are, choosing does not look at them.
 */
export class Fitness {
  private readonly served = new Map<number, number>();

  constructor(
    private readonly directory: Directory,
    private readonly sessions: ReadonlyMap<string, WorkerSession>,
  ) {}

  isServed(needs: number): boolean {
    let count = this.served.get(needs);
    if (count === undefined) {
      count = 0;
      for (const session of this.sessions.values()) if (this.fits(session, needs)) count += 1;
      this.served.set(needs, count);
    }
    return count > 0;
  }

  fits(session: WorkerSession, needs: number): boolean {
    const info = this.directory.needsOf(needs);
    return info !== undefined && session.fits(info);
  }

  /** Counts a worker in (1) or out (-1); answers with the needs that are served now and were not, or the other way round. */
  count(session: WorkerSession, change: 1 | -1): Set<number> {
    const turned = new Set<number>();
    for (const [needs, count] of this.served) {
      if (!this.fits(session, needs)) continue;
      this.served.set(needs, count + change);
      if (count === 0 || count + change === 0) turned.add(needs);
    }
    return turned;
  }
}
