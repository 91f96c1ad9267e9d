import type { CircuitRules } from '../core/circuit.js';
import { type Clock, EarliestTimer } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { Heap } from '../core/heap.js';
import type { OriginLimits } from '../core/limits.js';
import { isOriginBucket } from '../core/origin.js';
import { MAX_ORIGIN_PAUSE_MS, type OriginReport } from '../core/wire.js';
import { CallTimes } from './call-times.js';
import type { NeedsInfo } from './directory.js';
import { Origin } from './origin.js';

/** Origins that are remembered although nothing waits for them and nothing calls them; the oldest are forgotten. */
const MAX_IDLE = 10_000;
/** Limits that were written lately and are remembered. */
const MAX_WRITTEN = 1_000;
/** The longest pause of a bucket: what one origin asks for is done to all that share it. */
const MAX_BUCKET_PAUSE_MS = 30_000;

/** A call that was chosen or is out. */
export interface OriginCall {
  readonly id: string;
  readonly needs: number;
  /** Whether the receiver has taken it on: the call is over, although its attempt is not. */
  readonly isHandedOn?: boolean;
}

/** What a call has told about its origin: `nothing` if it was not made, or nobody knows. */
export type CallNews = 'answered' | 'down' | 'nothing';

/** Those who are told of origins. */
interface OriginListener {
  /** Needs whose jobs may start now and could not before, or the other way round. */
  onChange(needs: ReadonlySet<number>, mayStart: boolean): void;
  onOpened(origin: Origin, until: number): void;
  onClosed(origin: Origin): void;
  onPaused(origin: Origin, until: number): void;
}

interface OriginsOptions extends OriginListener {
  readonly clock: Clock;
  readonly config: Pick<
    Config,
    'originConcurrency' | 'circuitThreshold' | 'circuitPause' | 'circuitMaxPause'
  >;
  readonly needsOf: (needs: number) => NeedsInfo | undefined;
  /** The slots that workers have for calls of a tenant. */
  readonly slotsOf: (tenant: string) => number;
}

/**
 * What the leader knows of the origins that http targets call: pauses, circuits, limits and running calls. It is memory of one
 * term. A takeover forgets all but running calls and limits that were set, which costs at most as many calls as run at a time.
 *
 * Needs of an origin to which no call may start are passed over in choosing as if no worker served them, so that however many
 * jobs wait for it, they cost nothing. For needs of handlers every question is one comparison.
 */
export class Origins {
  private readonly byNeeds = new Map<number, Origin>();
  private readonly byTenant = new Map<string, Map<string, Origin>>();
  private readonly shut = new Set<number>();
  /** Those that are kept for what they say alone, the oldest first. */
  private readonly idle = new Set<Origin>();
  /** Limits that were written lately: needs that were being read meanwhile may tell older ones. */
  private readonly written = new Map<string, OriginLimits | null>();
  private readonly wakeUps = new Heap<{ at: number; origin: Origin }>((a, b) => a.at < b.at);
  private readonly timer: EarliestTimer;
  /** How long calls took lately. */
  readonly times = new CallTimes();
  private slotsReview: NodeJS.Immediate | undefined;
  private readonly rules: CircuitRules;

  constructor(private readonly options: OriginsOptions) {
    const { clock, config } = options;
    this.rules = {
      threshold: config.circuitThreshold,
      firstPauseMs: config.circuitPause,
      longestPauseMs: Math.max(config.circuitPause, config.circuitMaxPause),
    };
    const steady = { at: (moment: number, run: () => void) => clock.after(moment - clock.steady(), run) };
    this.timer = new EarliestTimer(steady, () => this.wakeUp());
  }

  /** Whether anything is known of any origin. */
  get isInUse(): boolean {
    return this.byNeeds.size > 0;
  }

  /** Whether no call for jobs with such needs may start now. */
  isShut(needs: number): boolean {
    return this.shut.size > 0 && this.shut.has(needs);
  }

  /** Whether jobs with such needs are calls that need no labels. */
  isPlainCall(needs: number): boolean {
    const info = this.options.needsOf(needs);
    if (info?.target !== 'http') return false;
    for (const _ in info.labels) return false;
    return true;
  }

  /** The origin that jobs with such needs call, made when it is first asked for; undefined for other targets. */
  of(needs: number): Origin | undefined {
    const known = this.byNeeds.get(needs);
    if (known) return known;
    const info = this.options.needsOf(needs);
    if (info?.target !== 'http') return undefined;
    const origin = this.find(info.tenant, info.handler) ?? this.make(info);
    origin.needs.add(needs);
    this.byNeeds.set(needs, origin);
    if (origin.isShut) this.shut.add(needs);
    return origin;
  }

  /** Whether no call of a new job with such needs may start now; makes nothing of an origin that is not known. */
  isShutTo(needs: number): boolean {
    const info = this.byTenant.size > 0 ? this.options.needsOf(needs) : undefined;
    return info?.target === 'http' && (this.find(info.tenant, info.handler)?.isShut ?? false);
  }

  find(tenant: string, name: string): Origin | undefined {
    return this.byTenant.get(tenant)?.get(name);
  }

  /** The origins of a tenant that are in memory. */
  all(tenant: string): Iterable<Origin> {
    return this.byTenant.get(tenant)?.values() ?? [];
  }

  /** How many circuits are open, and how many origins are paused. */
  figures(): { readonly open: number; readonly paused: number } {
    const now = this.options.clock.steady();
    let [open, paused] = [0, 0];
    for (const origins of this.byTenant.values()) {
      for (const origin of origins.values()) {
        if (origin.circuit.openUntil !== null) open += 1;
        if (origin.pausedUntil > now) paused += 1;
      }
    }
    return { open, paused };
  }

  /** Jobs with such needs wait in memory from now on. */
  join(needs: number): void {
    const origin = this.of(needs);
    if (!origin) return;
    origin.listed += 1;
    this.settle(origin);
  }

  /** No job with such needs waits in memory any more. */
  leave(needs: number): void {
    const origin = this.byNeeds.get(needs);
    if (!origin) return;
    origin.listed -= 1;
    this.settle(origin);
  }

  /** A job was chosen: its call counts from here on. */
  began(call: OriginCall): void {
    const origin = this.isInUse ? this.byNeeds.get(call.needs) : undefined;
    if (origin) this.count(origin, call, true);
  }

  /** The same for a job that does not come from the backlog, so that its origin may not be known yet. */
  beganOutside(call: OriginCall): void {
    const origin = this.of(call.needs);
    if (origin) this.count(origin, call, true);
  }

  /** A call of an earlier term goes on. */
  resumed(call: OriginCall): void {
    const origin = this.of(call.needs);
    if (origin) this.count(origin, call, false);
  }

  private count(origin: Origin, { id }: OriginCall, isStart: boolean): void {
    const now = this.options.clock.steady();
    origin.running += 1;
    if (isStart) {
      origin.bucket?.draw(now);
      origin.circuit.began(id, now);
    }
    this.review(origin);
  }

  /** A call is over, or with `refund` did not begin. */
  over(call: OriginCall, refund = false): void {
    const origin = this.isInUse ? this.byNeeds.get(call.needs) : undefined;
    if (!origin) return;
    origin.running -= 1;
    origin.circuit.over(call.id);
    if (refund) origin.bucket?.refund();
    this.review(origin);
  }

  /** Takes in what a call, which is still counted, has told, and how long it took. */
  told(call: OriginCall, news: CallNews, tookMs: number, report?: OriginReport): void {
    const origin = this.isInUse ? this.byNeeds.get(call.needs) : undefined;
    if (!origin || call.isHandedOn) return;
    const { clock, onOpened, onClosed } = this.options;
    const now = clock.steady();
    if (news !== 'nothing') this.times.add(origin.tenant, origin.name, tookMs);
    if (news === 'answered' && origin.circuit.answered()) onClosed(origin);
    if (news === 'down' && origin.circuit.failed(call.id, now, Math.random()))
      onOpened(origin, origin.circuit.openUntil!);
    if (report?.pauseMs) this.pause(origin, report.pauseMs, now);
    this.review(origin);
  }

  private pause(origin: Origin, pauseMs: number, now: number): void {
    const most = isOriginBucket(origin.name) ? MAX_BUCKET_PAUSE_MS : MAX_ORIGIN_PAUSE_MS;
    const until = now + Math.min(pauseMs, most);
    if (until <= origin.pausedUntil) return;
    const wasPaused = origin.pausedUntil > now;
    origin.pausedUntil = until;
    if (!wasPaused) this.options.onPaused(origin, until);
  }

  /** Closes the circuit and ends the pause of an origin; answers whether anything was to be done. */
  reset(tenant: string, name: string): boolean {
    const origin = this.find(tenant, name);
    if (!origin) return false;
    const now = this.options.clock.steady();
    const wasPaused = origin.pausedUntil > now;
    const hadFailures = origin.circuit.failures > 0;
    origin.pausedUntil = Number.NEGATIVE_INFINITY;
    if (origin.circuit.answered()) this.options.onClosed(origin);
    this.review(origin);
    return wasPaused || hadFailures;
  }

  /** Limits of an origin were written; null if they were taken away. */
  limited(tenant: string, name: string, limits: OriginLimits | null): void {
    const key = keyOf(tenant, name);
    this.written.delete(key);
    this.written.set(key, limits);
    if (this.written.size > MAX_WRITTEN) this.written.delete(this.written.keys().next().value!);
    const origin = this.find(tenant, name);
    if (!origin) return;
    origin.limit(limits, this.options.clock.steady());
    this.review(origin);
  }

  /** The slots of workers have changed. Many workers come at once, and thousands of origins are looked at only once for them. */
  slotsChanged(): void {
    if (this.isInUse) this.slotsReview ??= setImmediate(() => this.reviewSlots());
  }

  private reviewSlots(): void {
    this.slotsReview = undefined;
    for (const origins of [...this.byTenant.values()]) {
      for (const origin of [...origins.values()]) if (origin.running > 0) this.review(origin);
    }
  }

  stop(): void {
    this.timer.stop();
    clearImmediate(this.slotsReview);
  }

  private make({ tenant, handler, limits }: NeedsInfo): Origin {
    const { clock, config } = this.options;
    const usual = config.originConcurrency || null;
    const origin = new Origin(tenant, handler, this.rules, usual, () => this.options.slotsOf(tenant));
    const written = this.written.get(keyOf(tenant, handler));
    const set = written === undefined ? (limits ?? null) : written;
    if (set) origin.limit(set, clock.steady());
    const origins = this.byTenant.get(tenant);
    if (origins) origins.set(handler, origin);
    else this.byTenant.set(tenant, new Map([[handler, origin]]));
    this.keepIdle(origin);
    return origin;
  }

  /** Must be called after every change of what its calls may do. */
  private review(origin: Origin): void {
    const hold = origin.holdAt(this.options.clock.steady());
    if (hold && 'until' in hold) this.expect(origin, hold.until);
    const isShut = hold !== null;
    if (isShut !== origin.isShut) {
      origin.isShut = isShut;
      for (const needs of origin.needs) {
        if (isShut) this.shut.add(needs);
        else this.shut.delete(needs);
      }
      this.options.onChange(origin.needs, !isShut);
    }
    this.settle(origin);
  }

  private expect(origin: Origin, at: number): void {
    if (at >= origin.wakeAt) return;
    origin.wakeAt = at;
    this.wakeUps.push({ at, origin });
    this.timer.arm(at);
  }

  private wakeUp(): void {
    const now = this.options.clock.steady();
    for (let next = this.wakeUps.peek(); next && next.at <= now; next = this.wakeUps.peek()) {
      this.wakeUps.pop();
      const { at, origin } = next;
      // An earlier moment may have taken its place meanwhile, or the origin was forgotten.
      if (at !== origin.wakeAt || this.find(origin.tenant, origin.name) !== origin) continue;
      origin.wakeAt = Number.POSITIVE_INFINITY;
      this.review(origin);
    }
    this.timer.arm(this.wakeUps.peek()?.at ?? null);
  }

  /** Keeps those that are in use, some that say something, and nothing else. */
  private settle(origin: Origin): void {
    if (origin.isInUse) {
      this.idle.delete(origin);
      return;
    }
    if (origin.isPlainAt(this.options.clock.steady())) {
      this.drop(origin);
      return;
    }
    this.keepIdle(origin);
  }

  private keepIdle(origin: Origin): void {
    this.idle.add(origin);
    if (this.idle.size <= MAX_IDLE) return;
    const [oldest] = this.idle;
    this.drop(oldest!);
  }

  private drop(origin: Origin): void {
    this.idle.delete(origin);
    for (const needs of origin.needs) {
      this.byNeeds.delete(needs);
      this.shut.delete(needs);
    }
    const origins = this.byTenant.get(origin.tenant)!;
    origins.delete(origin.name);
    if (origins.size === 0) this.byTenant.delete(origin.tenant);
  }
}

function keyOf(tenant: string, name: string): string {
  return `${tenant}\n${name}`;
}
