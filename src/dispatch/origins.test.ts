import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { Circuit } from '../core/circuit.js';
import { DEFAULT_QUEUE_LIMITS, DEFAULT_TENANT_LIMITS } from '../core/limits.js';
import { Backlog } from './backlog.js';
import type { NeedsInfo } from './directory.js';
import { Origins } from './origins.js';
import type { Entry } from './segment.js';
import { Shares } from './shares.js';

const CONFIG = { originConcurrency: 2, circuitThreshold: 3, circuitPause: 5_000, circuitMaxPause: 20_000 };

/** Needs 1 to 3 call origins, 4 calls that of 1 with a label, and 5 is a handler. */
function needsOf(id: number): NeedsInfo {
  if (id === 5) return { id, tenant: 'default', target: 'handler', handler: 'work', labels: {} };
  const handler = `https://host-${id === 4 ? 1 : id}`;
  return { id, tenant: 'default', target: 'http', handler, labels: id === 4 ? { zone: 'eu' } : {} };
}

/** A backlog with one queue, whose jobs a worker takes that can run everything. */
class Desk {
  readonly clock = new TestClock();
  readonly told: string[] = [];
  ready = 0;
  slots = 1_000;
  private made = 0;
  readonly origins = new Origins({
    clock: this.clock,
    config: CONFIG,
    needsOf,
    slotsOf: () => this.slots,
    onChange: (needs, mayStart) => this.shares.servingChanged(needs, mayStart),
    onOpened: ({ name }) => this.told.push(`opened ${name}`),
    onClosed: ({ name }) => this.told.push(`closed ${name}`),
    onPaused: ({ name }) => this.told.push(`paused ${name}`),
  });
  readonly shares: Shares = new Shares({
    clock: this.clock,
    queueInfo: (id) => ({
      ...{ id, tenant: 'default', name: 'q', paused: false, fullAt: 0, debt: 0 },
      ...DEFAULT_QUEUE_LIMITS,
    }),
    tenantInfo: () => ({ ...DEFAULT_TENANT_LIMITS, fullAt: 0, debt: 0 }),
    isServed: (needs) => !this.origins.isShut(needs),
    origins: this.origins,
    onReady: () => {
      this.ready += 1;
    },
  });
  readonly backlog = new Backlog({
    ...{ clock: this.clock, shares: this.shares, segmentLimit: 1_000, crowdedAt: 1_000_000 },
    isTaken: () => false,
  });

  constructor() {
    this.shares.join({ tenant: null, queues: null });
  }

  submit(needs: number): string {
    this.made += 1;
    const id = this.made.toString().padStart(12, '0');
    const place = { tenant: 'default', queue: 1, lane: 0, key: null, rank: 5, fence: 1 };
    this.backlog.add({ id, needs, ...place, startBefore: null, sizeKib: 0, runAt: this.clock.now() });
    return id;
  }

  take(): Entry | undefined {
    const round = this.shares.round({ tenant: null, queues: null });
    const entry = this.backlog.take(round, () => true, this.clock.steady());
    if (entry) this.backlog.claimed(entry);
    return entry;
  }

  end(call: Entry, news: 'answered' | 'down' | 'nothing', pauseMs = 0): void {
    this.origins.told(call, news, 1, { pauseMs });
    this.shares.release(call);
  }
}

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('submit' as const), needs: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant('take' as const) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 7_000 }) }),
    fc.record({
      kind: fc.constant('end' as const),
      which: fc.nat(20),
      news: fc.constantFrom('answered' as const, 'down' as const, 'down' as const, 'nothing' as const),
      pauseMs: fc.constantFrom(0, 0, 0, 4_000),
    }),
  ),
  { maxLength: 150 },
);

describe('choosing beside origins', () => {
  it('takes the earliest job whose origin lets a call start, whatever happened before', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const desk = new Desk();
        const { clock } = desk;
        const waiting: { id: string; needs: number }[] = [];
        const out: Entry[] = [];
        const pausedUntil = new Map<string, number>();
        const nameOf = (needs: number) => needsOf(needs).handler;
        const mayStart = (needs: number) => {
          if (needs === 5) return true;
          const name = nameOf(needs);
          const running = out.filter((call) => nameOf(call.needs) === name).length;
          if (running >= CONFIG.originConcurrency || (pausedUntil.get(name) ?? 0) > clock.steady())
            return false;
          // The circuit has a model of its own.
          const circuit = desk.origins.find('default', name)?.circuit ?? new Circuit(RULES);
          return ['closed', 'half-open'].includes(circuit.stateAt(clock.steady()));
        };
        for (const step of all) {
          if (step.kind === 'submit') waiting.push({ id: desk.submit(step.needs), needs: step.needs });
          if (step.kind === 'pass') clock.advance(step.ms);
          if (step.kind === 'take') {
            const index = waiting.findIndex(({ needs }) => mayStart(needs));
            const taken = desk.take();
            expect(taken?.id).toBe(waiting[index]?.id);
            if (!taken) continue;
            waiting.splice(index, 1);
            out.push(taken);
          }
          if (step.kind === 'end' && out.length > 0) {
            const [call] = out.splice(step.which % out.length, 1);
            desk.end(call!, step.news, step.pauseMs);
            const name = nameOf(call!.needs);
            const until = clock.steady() + step.pauseMs;
            if (step.pauseMs > 0 && call!.needs !== 5)
              pausedUntil.set(name, Math.max(until, pausedUntil.get(name) ?? 0));
          }
        }
        // Every origin recovers, and nothing is left behind.
        for (let rounds = 0; waiting.length + out.length > 0 && rounds < 1_000; rounds++) {
          clock.advance(20_000);
          for (const call of out.splice(0)) desk.end(call, 'answered');
          for (let entry = desk.take(); entry; entry = desk.take()) {
            waiting.splice(
              waiting.findIndex(({ id }) => id === entry!.id),
              1,
            );
            out.push(entry);
          }
        }
        expect(waiting).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('is woken when a pause ends, and not before', () => {
    const desk = new Desk();
    desk.submit(1);
    const call = desk.take()!;
    desk.submit(1);
    desk.end(call, 'nothing', 4_000);
    const before = desk.ready;
    desk.clock.advance(3_999);
    expect(desk.ready).toBe(before);
    expect(desk.take()).toBeUndefined();
    desk.clock.advance(1);
    expect(desk.ready).toBe(before + 1);
    expect(desk.take()).toBeDefined();
  });

  it('forgets origins of which nothing is to be said', () => {
    const desk = new Desk();
    for (const needs of [1, 2, 4]) desk.submit(needs);
    const calls = [desk.take()!, desk.take()!, desk.take()!];
    expect([...desk.origins.all('default')]).toHaveLength(2);
    for (const call of calls) desk.end(call, 'answered');
    expect([...desk.origins.all('default')]).toEqual([]);
    expect(desk.origins.isInUse).toBe(false);
    desk.submit(1);
    desk.end(desk.take()!, 'nothing', 1_000);
    expect([...desk.origins.all('default')]).toHaveLength(1);
    desk.clock.advance(1_000);
    expect([...desk.origins.all('default')]).toEqual([]);
  });

  it('passes over thousands of jobs of an origin that is shut without looking at them', () => {
    const desk = new Desk();
    for (let i = 0; i < 900; i++) desk.submit(1);
    const [first, second] = [desk.take()!, desk.take()!];
    desk.end(first, 'nothing', 60_000);
    desk.submit(5);
    expect(desk.take()).toMatchObject({ needs: 5 });
    expect(desk.take()).toBeUndefined();
    desk.end(second, 'answered');
    expect(desk.take()).toBeUndefined();
  });
});

const RULES = { threshold: 3, firstPauseMs: 5_000, longestPauseMs: 20_000 };
