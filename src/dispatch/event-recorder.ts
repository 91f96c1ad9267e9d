import type { BatchState } from '../core/batch.js';
import type { Clock, Timer } from '../core/clock.js';
import { PunctualError } from '../core/errors.js';
import { EventRing, ringEntry, ringLimits } from '../core/event-ring.js';
import { ALL_TENANTS, type EventType, eventId, serverSentEvent } from '../core/events.js';
import type { JobError } from '../core/job.js';
import type { WorkflowState } from '../core/workflow.js';
import type { EndedJob } from '../store/ended-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import type { Directory } from './directory.js';
import type { Origin } from './origin.js';
import type { Running } from './running.js';
import type { WorkerSession } from './worker-session.js';

/**
 * Records what happens during a term, for those who listen.
 *
 * There is a ring of events for each tenant that somebody listens to, because a noisy tenant would push out the events of
 * a quiet one, and a common sequence would tell one tenant how much the others do. While nobody listens, nothing is
 * recorded: whoever has events to tell looks at `isHeard` first, once for all of them.
 */

const MOST_RINGS = 256;
/** Events of so long are told together: who is told often pays more than who waits a little. */
const TOGETHER_MS = 20;
/** How long a ring is kept for listeners that come back. */
const LINGER_MS = 60_000;
/** How often the progress of one job is told at most. */
const PROGRESS_EVERY_MS = 1_000;
const MAX_CODE_LENGTH = 256;

/** What an event is about; the names need no escaping. */
interface Subject {
  readonly job?: string | undefined;
  readonly queue?: string | undefined;
  readonly task?: string | undefined;
  readonly schedule?: string | undefined;
  readonly workflow?: string | undefined;
  readonly batch?: string | undefined;
  readonly operator?: true | undefined;
}

/** A ring, and those who are told when it has new events. */
class HeardRing {
  readonly readers = new Set<() => void>();
  hasNews = false;
  lingering: Timer | undefined;

  constructor(
    readonly name: string,
    readonly ring: EventRing,
  ) {}
}

/** What is told of jobs that came without their rows, by their ids. */
export type ToldOfJobs = ReadonlyMap<
  string,
  { readonly task?: string | null | undefined; readonly workflow?: string | null | undefined }
>;

/** A ring that somebody hears. */
export interface Hearing {
  readonly ring: EventRing;
  stop(): void;
}

export class EventRecorder {
  /** Whether anybody listens, or did so within a minute. */
  isHeard = false;
  private readonly rings = new Map<string, HeardRing>();
  private readonly startedAt: number;
  /** New rings begin above every number that an earlier one may have used, so that ids never repeat. */
  private floor = 0;
  private tick: NodeJS.Timeout | undefined;
  private isOver = false;
  /** The rings of the tenant that was looked up last; jobs of one tenant mostly come together. */
  private lastTenant: string | null = null;
  private lastRings: readonly HeardRing[] = [];
  /** The moment that was written out last. */
  private lastAt = Number.NaN;
  private lastAtText = '';
  private limits = ringLimits(1);
  private readonly progressToldAt = new WeakMap<Running, number>();

  constructor(
    private readonly epoch: number,
    private readonly clock: Clock,
    private readonly directory: Pick<Directory, 'queue'>,
  ) {
    this.startedAt = clock.steady();
  }

  /** How many rings there are. */
  get ringCount(): number {
    return this.rings.size;
  }

  /** Keeps the ring of a tenant, and calls back whenever it has new events, until it is stopped. */
  hear(name: string, onNews: () => void): Hearing {
    const heard = this.rings.get(name) ?? this.open(name);
    heard.lingering?.cancel();
    heard.lingering = undefined;
    heard.readers.add(onNews);
    return {
      ring: heard.ring,
      stop: () => {
        if (!heard.readers.delete(onNews) || heard.readers.size > 0 || this.isOver) return;
        heard.lingering = this.clock.after(LINGER_MS, () => this.drop(heard));
      },
    };
  }

  /** Ends with the term. */
  dispose(): void {
    this.isOver = true;
    clearTimeout(this.tick);
    for (const heard of [...this.rings.values()]) this.drop(heard);
  }

  /** Jobs that the leader was told of after they were stored, and what is known of those without their rows. */
  submitted(jobs: readonly Waiting[], told?: ToldOfJobs): void {
    for (const job of jobs) {
      if (job.fence !== 1 || !this.wants(job.tenant)) continue;
      // Never the handler that it needs: a task may be defined with another one, and an inline target has no task.
      const { task, workflow } = job.row
        ? { task: job.row.definition.task, workflow: job.row.workflow }
        : (told?.get(job.id) ?? {});
      const about = {
        ...{ job: job.id, queue: this.queueName(job.queue) },
        ...{ task: task || undefined, workflow: workflow || undefined },
      };
      this.tell('job.submitted', job.tenant, about, ',"state":"pending"');
    }
  }

  /** Attempts that were handed to their workers. */
  started(attempts: readonly { readonly running: Running }[]): void {
    for (const { running } of attempts) this.attempt('job.started', running, ',"state":"running"');
  }

  progressed(running: Running, progress: number): void {
    if (!this.wants(running.tenant)) return;
    const now = this.clock.steady();
    if (now - (this.progressToldAt.get(running) ?? Number.NEGATIVE_INFINITY) < PROGRESS_EVERY_MS) return;
    this.progressToldAt.set(running, now);
    this.attempt('job.progress', running, `,"state":"running","progress":${Number(progress)}`);
  }

  /** An attempt after which the job waits for the next one. */
  retrying(running: Running, error: JobError): void {
    this.attempt('job.retrying', running, `,"state":"pending"${codeText(error)}`);
  }

  /** A job that ended with an attempt. */
  ended(running: Running, state: EndedJob['state'], error: JobError | null): void {
    this.attempt(`job.${state}`, running, `,"state":"${state}"${codeText(error)}`);
  }

  /** Jobs that ended without a further attempt. */
  endedWaiting(jobs: readonly EndedJob[]): void {
    for (const { id, tenant, state, task, queueName, schedule, error, workflow, batch } of jobs) {
      if (!this.wants(tenant)) continue;
      const about = {
        job: id,
        queue: queueName ?? undefined,
        task: task ?? undefined,
        schedule: schedule ?? undefined,
        workflow: workflow ?? undefined,
        batch: batch ?? undefined,
      };
      const reason = error ? (JSON.parse(error) as JobError) : null;
      this.tell(`job.${state}`, tenant, about, `,"state":"${state}"${codeText(reason)}`);
    }
  }

  /** Jobs that were held, released, changed, redriven or deleted. */
  /** `place` is given where the jobs were read; what changes many of them does not read them. */
  changed(
    tenant: string,
    jobs: Iterable<string>,
    change: string,
    place?: {
      readonly queue: string;
      readonly task: string | null;
      readonly workflow: string | null;
      readonly batch: string | null;
    },
  ): void {
    if (!this.wants(tenant)) return;
    const { queue, task, workflow, batch } = place ?? {};
    const about = {
      ...(queue !== undefined && { queue }),
      ...(task && { task }),
      ...(workflow && { workflow }),
      ...(batch && { batch }),
    };
    for (const job of jobs) this.tell('job.changed', tenant, { job, ...about }, `,"change":"${change}"`);
  }

  batch(
    type: Extract<EventType, `batch.${string}`>,
    { id, tenant }: { readonly id: string; readonly tenant: string },
    state: BatchState,
    change?: 'cancel' | 'failure',
  ): void {
    this.tell(type, tenant, { batch: id }, `,"state":"${state}"${changeText(change)}`);
  }

  workflow(
    type: Extract<EventType, `workflow.${string}`>,
    { id, tenant }: { readonly id: string; readonly tenant: string },
    state: WorkflowState,
    change?: 'cancel' | 'failure' | 'hold' | 'release',
  ): void {
    this.tell(type, tenant, { workflow: id }, `,"state":"${state}"${changeText(change)}`);
  }

  queue(type: 'queue.paused' | 'queue.resumed' | 'queue.changed', tenant: string, queue: string): void {
    this.tell(type, tenant, { queue }, '');
  }

  worker(
    type: 'worker.registered' | 'worker.draining' | 'worker.left' | 'worker.dead',
    /** Without a tenant it serves all of them. What belongs to operators is told to them alone. */
    { id, tenant, operator }: Pick<WorkerSession, 'id' | 'tenant' | 'operator'>,
  ): void {
    const more = operator ? `,"worker":"${id}","operator":true` : `,"worker":"${id}"`;
    this.tell(type, tenant ?? ALL_TENANTS, operator ? { operator } : {}, more);
  }

  /** An occurrence whose job was made. */
  fired(tenant: string, schedule: string, job: { readonly id: string; readonly task: string | null }): void {
    this.tell('schedule.fired', tenant, { schedule, job: job.id, task: job.task ?? undefined }, '');
  }

  firedRun(tenant: string, schedule: string, run: { workflow: string } | { batch: string }): void {
    const [[kind, id]] = Object.entries(run) as [[string, string]];
    this.tell('schedule.fired', tenant, { schedule }, `,"${kind}":"${id}"`);
  }

  missed(tenant: string, schedule: string, count: number): void {
    this.tell('schedule.missed', tenant, { schedule }, `,"count":${count}`);
  }

  scheduleChanged(
    tenant: string,
    schedule: string,
    change: 'created' | 'changed' | 'paused' | 'resumed' | 'deleted',
    reason?: 'gone',
  ): void {
    const why = reason === undefined ? '' : `,"reason":"${reason}"`;
    this.tell('schedule.changed', tenant, { schedule }, `,"change":"${change}"${why}`);
  }

  /** What becomes of an origin; `until` is on the database's clock. */
  origin(
    type: Extract<EventType, `origin.${string}`>,
    { tenant, name, circuit }: Pick<Origin, 'tenant' | 'name' | 'circuit'>,
    until: number | null,
  ): void {
    const end = until === null ? '' : `,"until":"${new Date(until).toISOString()}"`;
    const count = type === 'origin.opened' ? `,"count":${circuit.failures}` : '';
    this.tell(type, tenant, {}, `,"origin":${JSON.stringify(name)}${end}${count}`);
  }

  private attempt(type: EventType, running: Running, more: string): void {
    if (!this.wants(running.tenant)) return;
    const { task, schedule, workflow, batch } = running.facts;
    const about = {
      job: running.id,
      queue: this.queueName(running.queue),
      task: task ?? undefined,
      schedule: schedule ?? undefined,
      workflow: workflow ?? undefined,
      batch: batch ?? undefined,
    };
    const attempt = `,"attempt":${running.fence},"worker":"${running.worker}"`;
    this.tell(type, running.tenant, about, attempt + more);
  }

  private queueName(id: number): string | undefined {
    return this.directory.queue(id)?.name;
  }

  private wants(tenant: string): boolean {
    return this.ringsOf(tenant).length > 0;
  }

  private ringsOf(tenant: string): readonly HeardRing[] {
    if (tenant !== this.lastTenant) {
      const own = tenant === ALL_TENANTS ? undefined : this.rings.get(tenant);
      const rings = [own, this.rings.get(ALL_TENANTS)];
      this.lastRings = rings.filter((heard) => heard !== undefined);
      this.lastTenant = tenant;
    }
    return this.lastRings;
  }

  /** Adds an event to the rings that want it. A template: `JSON.stringify` would take ten times as long. */
  private tell(type: EventType, tenant: string, about: Subject, more: string): void {
    const rings = this.ringsOf(tenant);
    if (rings.length === 0) return;
    const { job, queue, task, schedule, workflow, batch } = about;
    let body = `"type":"${type}","at":"${this.at()}"`;
    if (tenant !== ALL_TENANTS) body += `,"tenant":"${tenant}"`;
    if (job !== undefined) body += `,"job":"${job}"`;
    if (queue !== undefined) body += `,"queue":"${queue}"`;
    if (task !== undefined) body += `,"task":"${task}"`;
    if (schedule !== undefined) body += `,"schedule":"${schedule}"`;
    if (workflow !== undefined) body += `,"workflow":"${workflow}"`;
    if (batch !== undefined) body += `,"batch":"${batch}"`;
    body += more;
    for (const heard of rings) {
      const id = eventId(this.epoch, heard.ring.last + 1);
      const text = serverSentEvent(id, type, `{"id":"${id}",${body}}`);
      heard.ring.add(ringEntry(type, about, text), this.limits);
      heard.hasNews = true;
    }
    this.tick ??= setTimeout(() => this.tellReaders(), TOGETHER_MS).unref();
  }

  private tellReaders(): void {
    this.tick = undefined;
    for (const heard of this.rings.values()) {
      if (!heard.hasNews) continue;
      heard.hasNews = false;
      for (const onNews of heard.readers) onNews();
    }
  }

  private at(): string {
    const now = this.clock.now();
    if (now !== this.lastAt) {
      this.lastAt = now;
      this.lastAtText = new Date(now).toISOString();
    }
    return this.lastAtText;
  }

  private open(name: string): HeardRing {
    if (this.rings.size >= MOST_RINGS) {
      const [unheard] = [...this.rings.values()].filter(({ readers }) => readers.size === 0);
      if (!unheard) throw tooManyTenants();
      unheard.lingering?.cancel();
      this.drop(unheard);
    }
    // Microseconds of the term: faster than events can come, so a later ring begins above an earlier one.
    const elapsed = Math.floor((this.clock.steady() - this.startedAt) * 1_000);
    const heard = new HeardRing(name, new EventRing(Math.max(elapsed, this.floor)));
    this.rings.set(name, heard);
    this.ringsChanged();
    return heard;
  }

  private drop(heard: HeardRing): void {
    heard.lingering?.cancel();
    this.rings.delete(heard.name);
    this.floor = Math.max(this.floor, heard.ring.last + 1);
    this.ringsChanged();
  }

  private ringsChanged(): void {
    this.lastTenant = null;
    this.isHeard = this.rings.size > 0;
    this.limits = ringLimits(this.rings.size);
  }
}

function changeText(change: string | undefined): string {
  return change === undefined ? '' : `,"change":"${change}"`;
}

function codeText(error: JobError | null): string {
  const code = error?.code;
  // The code of a handler's error may be any text.
  return code === undefined ? '' : `,"errorCode":${JSON.stringify(code.slice(0, MAX_CODE_LENGTH))}`;
}

function tooManyTenants(): PunctualError {
  const detail = `Events of ${MOST_RINGS} tenants are listened to already; try again later.`;
  return new PunctualError('TOO_MANY_LISTENERS', detail, { retryAfter: 10 });
}
