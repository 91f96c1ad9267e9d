import type { WorkerSession } from './worker-session.js';

/** How many calls the workers that serve a tenant can make at the same time. */
export class CallSlots {
  /** By tenant; empty after every change of the sessions. */
  private readonly known = new Map<string, number>();

  constructor(private readonly sessions: ReadonlyMap<string, WorkerSession>) {}

  of(tenant: string): number {
    const known = this.known.get(tenant);
    if (known !== undefined) return known;
    let slots = 0;
    for (const session of this.sessions.values()) {
      if (session.draining || !session.ability.targets.has('http') || !session.servesTenant(tenant)) continue;
      slots += session.slots;
    }
    this.known.set(tenant, slots);
    return slots;
  }

  /** Must be called when a session comes, goes or drains. */
  changed(): void {
    this.known.clear();
  }
}
