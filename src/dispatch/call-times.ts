import type { OriginLatency } from '../core/wire.js';

/** Calls of one origin that are remembered. */
const MOST_CALLS = 100;
/** Origins that are remembered; of more, those that were not called for the longest time are forgotten. */
const MOST_ORIGINS = 1_000;

/** How long the newest calls of one origin took. */
class Times {
  private readonly ms = new Uint32Array(MOST_CALLS);
  private calls = 0;

  constructor(
    readonly tenant: string,
    readonly name: string,
  ) {}

  add(ms: number): void {
    this.ms[this.calls % MOST_CALLS] = ms;
    this.calls += 1;
  }

  latency(): OriginLatency {
    const calls = Math.min(this.calls, MOST_CALLS);
    const sorted = this.ms.slice(0, calls).sort();
    const at = (share: number) => sorted[Math.ceil(share * calls) - 1]!;
    return { calls, p50Ms: at(0.5), p99Ms: at(0.99) };
  }
}

/** How long calls to origins took lately: memory of one term, of a few bytes for each origin. */
export class CallTimes {
  /** The one that was called last is last. */
  private readonly all = new Map<string, Times>();

  /** Notes a call that was answered, or that its origin did not answer. */
  add(tenant: string, name: string, ms: number): void {
    const key = keyOf(tenant, name);
    const times = this.all.get(key) ?? new Times(tenant, name);
    this.all.delete(key);
    this.all.set(key, times);
    times.add(Math.max(0, ms));
    if (this.all.size > MOST_ORIGINS) this.all.delete(this.all.keys().next().value!);
  }

  /** Null if no call to it is remembered. */
  of(tenant: string, name: string): OriginLatency | null {
    return this.all.get(keyOf(tenant, name))?.latency() ?? null;
  }

  /** The origins of a tenant that were called. */
  *namesOf(tenant: string): Iterable<string> {
    for (const times of this.all.values()) if (times.tenant === tenant) yield times.name;
  }
}

function keyOf(tenant: string, name: string): string {
  return `${tenant}\n${name}`;
}
