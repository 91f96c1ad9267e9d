import { humanDuration } from '../core/duration.js';
import { Loop, logFailure } from '../core/loop.js';
import { TimeSlice } from '../core/time-slice.js';
import { Top } from '../core/top.js';
import type { UnservedView } from '../core/wire.js';
import type { Portion } from '../store/portion.js';
import type { NeedsInfo } from './directory.js';
import type { LeaderState } from './leader-state.js';
import { describeNeeds } from './needs-text.js';
import type { QueueShare, SegmentGroup } from './queue-share.js';
import type { WorkerGroup } from './shares.js';

/** How often the backlog is compared with the workers, at most. */
const MAX_EVERY_MS = 5_000;
/** Comparisons in the time after which nodes warn, so that the warning is not much later. */
const LOOKS = 4;
/** When a warning about the same kind of jobs is repeated. */
const REPEAT_MS = 600_000;
/** Kinds of jobs that are warned about one by one, together and of one tenant; the rest is counted. */
const MAX_TOLD = 50;
const MAX_TOLD_PER_TENANT = 10;
/** Sessions that are looked at between two looks at the clock. */
const SESSIONS_AT_ONCE = 256;

/** A kind of jobs that a warning was logged about. */
interface Told {
  readonly tenant: string;
  readonly what: string;
  toldAt: number;
  /** The last pass that found it unserved. */
  pass: number;
  /** Whether it was unserved at the last pass. */
  isOpen: boolean;
}

/** The groups of the live workers with an ability, by the ability's key. */
type Serving = ReadonlyMap<string, ReadonlySet<WorkerGroup>>;

/** A position in the list of unserved jobs: by queue, then by needs. */
export class UnservedCursor {
  constructor(
    readonly queue: string,
    readonly needs: number,
  ) {}

  /** The cursor of a text; undefined if it is none. */
  static parse(text: string): UnservedCursor | undefined {
    const match = /^([^/]+)\/(\d{1,10})$/.exec(text);
    return match ? new UnservedCursor(match[1]!, Number(match[2])) : undefined;
  }

  get text(): string {
    return `${this.queue}/${this.needs}`;
  }

  isBefore(other: UnservedCursor): boolean {
    return this.queue === other.queue ? this.needs < other.needs : this.queue < other.queue;
  }
}

/** Unserved jobs of one kind, as the API shows them. */
export interface Unserved {
  readonly cursor: UnservedCursor;
  readonly view: UnservedView;
}

type Leader = Pick<
  LeaderState,
  | 'clock'
  | 'config'
  | 'directory'
  | 'fitness'
  | 'isLoaded'
  | 'isOver'
  | 'log'
  | 'paused'
  | 'sessions'
  | 'shares'
>;

/**
 * Finds ready jobs that no live worker serves, and warns about them. The backlog is compared with the workers every few
 * seconds, group by group, so it costs nothing per job. What is paused is not looked at: its jobs wait for something
 * else.
 */
export class UnservedJobs {
  private readonly loop: Loop;
  /** What was warned about, by queue and needs. */
  private readonly told = new Map<string, Told>();
  private pass = 0;
  private countedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly leader: Leader) {
    this.loop = new Loop({
      name: 'unserved jobs',
      everyMs: Math.min(MAX_EVERY_MS, Math.ceil(leader.config.unservedAfter / LOOKS)),
      pass: () => this.runOnce(),
      onError: logFailure(leader.log, 'jobs without a worker could not be looked for'),
    });
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  /** Compares the backlog with the workers once. */
  async runOnce(): Promise<void> {
    const { leader } = this;
    if (leader.paused || !leader.isLoaded) return;
    const serving = await this.serving();
    this.pass += 1;
    let untold = 0;
    await leader.shares.eachGroup((share, group) => {
      if (share.info.paused) this.keepTold(share, group);
      else if (this.mark(share, group, serving) && !this.tell(share, group)) untold += 1;
    });
    if (leader.isOver) return;
    this.tellServed();
    this.tellCount(untold);
  }

  /** Whether the jobs have been without a worker for so long that it is worth a warning. */
  isUnserved(share: QueueShare, { unservedSince }: SegmentGroup): boolean {
    const { clock, config, paused } = this.leader;
    if (unservedSince === null || paused || share.info.paused) return false;
    return clock.steady() - unservedSince >= config.unservedAfter;
  }

  /** What the tenant's workers do not serve, by queue and needs, after the cursor. */
  async list(tenant: string, after: UnservedCursor | null, limit: number): Promise<Portion<Unserved>> {
    const serving = await this.serving();
    const first = new Top<{ cursor: UnservedCursor; group: SegmentGroup }>(limit + 1, (a, b) =>
      a.cursor.isBefore(b.cursor),
    );
    await this.leader.shares.eachGroup((share, group) => {
      // The last comparison may be seconds old.
      if (!this.isUnserved(share, group) || this.isServed(share, group, serving)) return;
      const cursor = new UnservedCursor(share.info.name, group.needs);
      if (group.ready.size > 0 && (after === null || after.isBefore(cursor))) first.add({ cursor, group });
    }, tenant);
    const found = first.take();
    const rows = found.slice(0, limit).flatMap(({ cursor, group }) => {
      const view = this.view(cursor.queue, group);
      return view ? [{ cursor, view }] : [];
    });
    return { rows, more: found.length > limit };
  }

  private view(queue: string, group: SegmentGroup): UnservedView | null {
    const { clock, directory } = this.leader;
    const needs = directory.needsOf(group.needs);
    if (!needs || group.unservedSince === null) return null;
    return {
      queue,
      target: needs.target,
      task: taskOf(needs),
      requires: needs.labels,
      ready: group.readyCount,
      since: new Date(clock.now() - (clock.steady() - group.unservedSince)).toISOString(),
      detail: `No live worker serves queue ${queue}${describeNeeds(needs)}.`,
    };
  }

  /** The workers that take jobs, by what they can run. */
  private async serving(): Promise<Serving> {
    const { sessions, shares } = this.leader;
    const serving = new Map<string, Set<WorkerGroup>>();
    const slice = new TimeSlice();
    let seen = 0;
    for (const session of sessions.values()) {
      seen += 1;
      if (seen % SESSIONS_AT_ONCE === 0 && slice.isOver) await slice.next();
      if (session.draining) continue;
      const group = shares.groupOf(session);
      const groups = serving.get(session.ability.key);
      if (groups) groups.add(group);
      else serving.set(session.ability.key, new Set([group]));
    }
    return serving;
  }

  private isServed({ info }: QueueShare, { needs }: SegmentGroup, serving: Serving): boolean {
    for (const ability of this.leader.fitness.metBy(needs)) {
      for (const { names } of serving.get(ability) ?? []) {
        if (names === null || names.has(info.name)) return true;
      }
    }
    return false;
  }

  /** Notes since when the jobs have no worker; answers whether that is worth a warning. */
  private mark(share: QueueShare, group: SegmentGroup, serving: Serving): boolean {
    if (group.ready.size === 0 || this.isServed(share, group, serving)) {
      group.unservedSince = null;
      return false;
    }
    group.unservedSince ??= this.leader.clock.steady();
    return this.isUnserved(share, group);
  }

  private keepTold(share: QueueShare, group: SegmentGroup): void {
    const told = this.told.size > 0 && this.told.get(keyOf(share, group));
    if (told) told.pass = this.pass;
  }

  /** Warns about the jobs unless that was done lately; answers false if too many others were warned about. */
  private tell(share: QueueShare, group: SegmentGroup): boolean {
    const { leader } = this;
    const now = leader.clock.steady();
    const { tenant, name: queue } = share.info;
    const needs = leader.directory.needsOf(group.needs);
    if (!needs) return true;
    const key = keyOf(share, group);
    let told = this.told.get(key);
    if (!told) {
      if (!this.hasRoomFor(tenant)) return false;
      const what = `queue ${queue}${describeNeeds(needs)}`;
      told = { tenant, what, toldAt: Number.NEGATIVE_INFINITY, pass: this.pass, isOpen: false };
      this.told.set(key, told);
    }
    told.pass = this.pass;
    if (now - told.toldAt < REPEAT_MS) return true;
    told.toldAt = now;
    told.isOpen = true;
    const since = humanDuration(now - group.unservedSince!);
    const fields = { tenant, queue, handler: taskOf(needs), ready: group.readyCount, for: since };
    leader.log.warn(fields, `jobs are ready, but no live worker serves ${told.what}`);
    return true;
  }

  private hasRoomFor(tenant: string): boolean {
    if (this.told.size >= MAX_TOLD) return false;
    let own = 0;
    for (const told of this.told.values()) if (told.tenant === tenant) own += 1;
    return own < MAX_TOLD_PER_TENANT;
  }

  /** Logs once what this pass no longer found, and forgets it when it may be warned about again. */
  private tellServed(): void {
    const now = this.leader.clock.steady();
    for (const [key, told] of this.told) {
      if (told.pass === this.pass) continue;
      if (told.isOpen)
        this.leader.log.info({ tenant: told.tenant }, `no jobs lack a worker any more: ${told.what}`);
      told.isOpen = false;
      if (now - told.toldAt >= REPEAT_MS) this.told.delete(key);
    }
  }

  private tellCount(kinds: number): void {
    const now = this.leader.clock.steady();
    if (kinds === 0 || now - this.countedAt < REPEAT_MS) return;
    this.countedAt = now;
    this.leader.log.warn({ kinds }, 'there are more kinds of ready jobs that no live worker serves');
  }
}

function keyOf({ info }: QueueShare, { needs }: SegmentGroup): string {
  return `${info.id}/${needs}`;
}

function taskOf({ target, handler }: NeedsInfo): string | null {
  return target === 'handler' ? handler : null;
}
