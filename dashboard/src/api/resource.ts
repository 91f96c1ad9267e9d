import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Batch, onEvents } from '../live/live.js';
import { get, getExactly, type Request, tenant } from './client.js';
import { asProblem, mayPass, type Problem } from './problem.js';
import { isVisible } from './visibility.js';

/**
 * Something that is read from the API and shown. Whoever shows the same shares one resource, which is read again when events
 * say that it has changed, never more often than a screen can use, and not at all while nobody looks.
 */

/** What a screen is shown of a resource. What was read before stays while it is read again. */
export interface Resource<T> {
  readonly data: ReadonlySignal<T | undefined>;
  /** Why the newest read failed; null if it did not. */
  readonly problem: ReadonlySignal<Problem | null>;
  /** Whether it is being read. */
  readonly isLoading: ReadonlySignal<boolean>;
  /** Reads it now. */
  readonly refresh: () => Promise<void>;
}

/** When a resource is read again. */
export interface Freshness {
  /** Types of events, such as `job.*`, after which it is read again. */
  readonly events?: readonly string[];
  /** Only events that name this job, workflow, batch, schedule, queue or worker. */
  readonly about?: string;
  /** The shortest time between two reads because of events; default 2 s. */
  readonly atMostEveryMs?: number;
  /** Whether an operator is shown all tenants. */
  readonly allTenants?: boolean;
  /** Whether numbers must stay as they are written, for payloads and results. */
  readonly isExact?: boolean;
  /** Read again after so long also without events, for what passes with time. */
  readonly everyMs?: number;
}

const AT_MOST_EVERY_MS = 2_000;
/** The longest time between two tries while reads fail and nothing is heard. */
const LONGEST_PAUSE_MS = 15_000;
/** What is younger is not read again because one more part of the page shows it. */
const FRESH_MS = 1_000;
/** How long something is kept for whoever comes back to it. */
const LINGER_MS = 60_000;
const MOST_KEPT = 100;

/** Something that is read, apart from the components that show it. */
export class SharedResource<T> implements Resource<T> {
  readonly data = signal<T | undefined>(undefined);
  readonly problem = signal<Problem | null>(null);
  readonly isLoading = signal(false);
  private users = new Set<Freshness>();
  private reading: Promise<void> | null = null;
  private readAt = Number.NEGATIVE_INFINITY;
  private isStale = false;
  private timer: number | undefined;
  private again: Promise<void> | null = null;
  private failures = 0;
  private stopWatching: (() => void) | undefined;
  private broken = new AbortController();
  private leftAt = 0;

  constructor(
    private readonly path: string,
    private readonly allTenants: boolean,
    private readonly ask: (path: string, request: Request) => Promise<T>,
  ) {}

  get isUsed(): boolean {
    return this.users.size > 0;
  }

  get isKept(): boolean {
    return this.users.size > 0 || performance.now() - this.leftAt < LINGER_MS;
  }

  refresh = (): Promise<void> => {
    if (this.reading === null) return this.begin();
    // What is being read may be from before whatever makes somebody ask now.
    this.again ??= this.reading
      .catch(() => undefined)
      .then(() => {
        this.again = null;
        return this.isUsed ? (this.reading ?? this.begin()) : undefined;
      });
    return this.again;
  };

  private begin(): Promise<void> {
    const reading = this.read().finally(() => {
      if (this.reading !== reading) return;
      this.reading = null;
      this.plan();
    });
    this.reading = reading;
    return reading;
  }

  /** Keeps it fresh until the returned function is called. */
  use(freshness: Freshness): () => void {
    this.users.add(freshness);
    if (this.users.size === 1) this.start();
    const stopListening = this.listen(freshness);
    const isFresh = performance.now() - this.readAt <= FRESH_MS && this.data.value !== undefined;
    if (this.reading === null && !isFresh) void this.begin();
    else this.plan();
    return () => {
      stopListening?.();
      this.users.delete(freshness);
      if (this.users.size === 0) this.stop();
    };
  }

  private start(): void {
    this.broken = new AbortController();
    this.stopWatching = isVisible.subscribe(() => this.plan());
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.stopWatching?.();
    this.broken.abort();
    if (this.reading !== null) {
      // What was broken off is read when somebody wants it again, however soon that is.
      this.readAt = Number.NEGATIVE_INFINITY;
      this.isLoading.value = false;
    }
    this.reading = null;
    this.leftAt = performance.now();
  }

  private listen({ events, about }: Freshness): (() => void) | undefined {
    return (
      events &&
      onEvents(events, (batch) => {
        if (about !== undefined && !mayBeAbout(batch, about)) return;
        this.isStale = true;
        // Who tells news can be asked, too.
        this.failures = 0;
        this.plan();
      })
    );
  }

  /** Sets the clock for the next read. */
  private plan(): void {
    clearTimeout(this.timer);
    if (this.users.size === 0 || this.reading || !isVisible.value) return;
    // Who is not signed in, or may not read it, does not become so by asking again.
    if (this.problem.value?.status === 401 || this.problem.value?.status === 403) return;
    let least = Number.POSITIVE_INFINITY;
    let every = Number.POSITIVE_INFINITY;
    for (const { atMostEveryMs = AT_MOST_EVERY_MS, everyMs = every } of this.users) {
      least = Math.min(least, atMostEveryMs);
      every = Math.min(every, everyMs);
    }
    const age = performance.now() - this.readAt;
    const pause = Math.min(least * 2 ** this.failures, Math.max(least, LONGEST_PAUSE_MS));
    const wait = (this.isStale ? pause : every) - age;
    if (wait === Number.POSITIVE_INFINITY) return;
    this.timer = window.setTimeout(() => void this.refresh(), Math.max(0, wait));
  }

  private async read(): Promise<void> {
    const { signal: broken } = this.broken;
    clearTimeout(this.timer);
    this.isStale = false;
    this.isLoading.value = true;
    this.readAt = performance.now();
    try {
      this.data.value = await this.ask(this.path, { signal: broken, allTenants: this.allTenants });
      this.problem.value = null;
      this.failures = 0;
    } catch (error) {
      const problem = asProblem(error);
      if (!problem) return;
      this.problem.value = problem;
      // Where nothing else calls for another try, the node may be back.
      if (!mayPass(problem)) return;
      this.isStale = true;
      this.failures += 1;
    } finally {
      if (!broken.aborted) this.isLoading.value = false;
    }
  }
}

/** Whether a batch tells of something, or may have left out an event that does. */
function mayBeAbout({ events, isPartial, isReset, isBeginning }: Batch, about: string): boolean {
  if (isPartial || isReset || isBeginning) return true;
  return events.some((event) =>
    [event.job, event.workflow, event.batch, event.schedule, event.queue, event.worker].includes(about),
  );
}

const kept = new Map<string, SharedResource<unknown>>();

function resourceAt<T>(path: string, isExact: boolean, allTenants: boolean): SharedResource<T> {
  const key = `${allTenants ? '*' : (tenant.value ?? '')} ${path} ${isExact}`;
  const found = kept.get(key) ?? new SharedResource<unknown>(path, allTenants, isExact ? getExactly : get);
  // The newest is last, so that the first ones are the least wanted.
  kept.delete(key);
  kept.set(key, found);
  for (const [name, each] of kept) {
    if (kept.size <= MOST_KEPT) break;
    if (!each.isKept) kept.delete(name);
  }
  return found as SharedResource<T>;
}

/** Reads everything that is shown again, because somebody has signed in again. */
export function readAgain(): void {
  for (const resource of kept.values()) if (resource.isUsed) void resource.refresh();
}

/** Forgets everything that was read, because somebody else looks now. */
export function forgetResources(): void {
  kept.clear();
}

const NOTHING: Resource<never> = {
  data: signal(undefined),
  problem: signal(null),
  isLoading: signal(false),
  refresh: () => Promise.resolve(),
};

/** Reads what is at a path of the API and keeps it fresh while it is shown; null reads nothing. */
export function useResource<T>(path: string | null, freshness: Freshness = {}): Resource<T> {
  const { about, atMostEveryMs, everyMs, isExact = false, allTenants = false } = freshness;
  const resource = useMemo(
    () => (path === null ? null : resourceAt<T>(path, isExact, allTenants)),
    [path, isExact, allTenants, tenant.value],
  );
  const events = freshness.events?.join();
  useEffect(
    () =>
      resource?.use({
        ...(events !== undefined && { events: events.split(',') }),
        ...(about !== undefined && { about }),
        ...(atMostEveryMs !== undefined && { atMostEveryMs }),
        ...(everyMs !== undefined && { everyMs }),
      }),
    [resource, events, about, atMostEveryMs, everyMs],
  );
  return resource ?? NOTHING;
}
