import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SharesForTests } from '../../test/shares-for-tests.js';
import { TestClock } from '../../test/test-clock.js';
import { laneOf } from '../core/limits.js';
import { Backlog } from './backlog.js';
import type { Entry } from './segment.js';
import type { WorkerScope } from './shares.js';

const EVERYTHING: WorkerScope = { tenant: null, queues: null };

/** A backlog and its shares, with takers that ask for one job at a time. */
class Desk {
  readonly clock = new TestClock();
  readonly setup = new SharesForTests(this.clock);
  readonly shares = this.setup.shares;
  readonly backlog = new Backlog({
    clock: this.clock,
    shares: this.shares,
    segmentLimit: 1_000,
    crowdedAt: 1_000_000,
    isTaken: () => false,
  });
  private made = 0;

  /** A scope that is there to stay, so that it has turns of its own. */
  join(queues: readonly string[] | null, tenant: string | null = null): WorkerScope {
    const scope = { tenant, queues: queues && new Set(queues) };
    this.shares.join(scope);
    return scope;
  }

  submit(queue: number, count = 1, { needs = 1, key = null as string | null } = {}): void {
    const { tenant } = this.setup.queue(queue);
    for (let i = 0; i < count; i++) {
      this.made += 1;
      const id = this.made.toString().padStart(12, '0');
      const job = {
        id,
        tenant,
        queue,
        needs,
        lane: laneOf(key),
        key,
        rank: 5,
        fence: 1,
        startBefore: null,
        sizeKib: 0,
      };
      this.backlog.add({ ...job, runAt: this.clock.now() });
    }
  }

  take(scope: WorkerScope = EVERYTHING, canRun: (needs: number) => boolean = () => true): Entry | undefined {
    return this.backlog.take(this.shares.round(scope), canRun, this.clock.now());
  }

  /** The queues of the next jobs that a scope gets. */
  queuesOf(count: number, scope: WorkerScope = EVERYTHING): (number | undefined)[] {
    return Array.from({ length: count }, () => this.take(scope)?.queue);
  }
}

/** Turns as a book would describe them: each in order starts as many as its weight, then goes to the end. */
class PlainTurns {
  private order: { name: string; left: number }[] = [];

  constructor(private readonly weightOf: (name: string) => number) {}

  get first(): string | undefined {
    return this.order[0]?.name;
  }

  come(name: string): void {
    if (!this.order.some((each) => each.name === name)) this.order.push({ name, left: this.weightOf(name) });
  }

  go(name: string): void {
    this.order = this.order.filter((each) => each.name !== name);
  }

  spend(): void {
    const turn = this.order[0]!;
    turn.left -= 1;
    if (turn.left > 0) return;
    this.order.shift();
    this.come(turn.name);
  }
}

/** Who comes next among tenants and the queues inside them. */
class PlainShares {
  private readonly jobs = new Map<number, number>();
  private readonly tenants: PlainTurns;
  private readonly queues = new Map<string, PlainTurns>();

  constructor(private readonly desk: Desk) {
    this.tenants = new PlainTurns((tenant) => desk.setup.tenants.get(tenant)!.weight);
  }

  submit(queue: number, count: number): void {
    const { tenant } = this.desk.setup.queue(queue);
    this.jobs.set(queue, (this.jobs.get(queue) ?? 0) + count);
    this.tenants.come(tenant);
    this.queuesOf(tenant).come(String(queue));
  }

  take(): number | undefined {
    const tenant = this.tenants.first;
    if (tenant === undefined) return undefined;
    const queues = this.queuesOf(tenant);
    const queue = Number(queues.first);
    queues.spend();
    this.tenants.spend();
    const left = this.jobs.get(queue)! - 1;
    this.jobs.set(queue, left);
    if (left === 0) queues.go(String(queue));
    if (queues.first === undefined) this.tenants.go(tenant);
    return queue;
  }

  private queuesOf(tenant: string): PlainTurns {
    const weightOf = (queue: string) => this.desk.setup.queue(Number(queue)).weight;
    const turns = this.queues.get(tenant) ?? new PlainTurns(weightOf);
    this.queues.set(tenant, turns);
    return turns;
  }
}

const weights = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 });

/** After any number of starts, everybody has had the turns that were complete, and at most one more. */
function expectShares(started: readonly (string | number)[], weightOf: ReadonlyMap<string | number, number>) {
  const round = [...weightOf.values()].reduce((sum, weight) => sum + weight, 0);
  const counts = new Map<string | number, number>();
  started.forEach((who, i) => {
    counts.set(who, (counts.get(who) ?? 0) + 1);
    const complete = Math.floor((i + 1) / round);
    for (const [each, weight] of weightOf) {
      const count = counts.get(each) ?? 0;
      expect(count).toBeGreaterThanOrEqual(complete * weight);
      expect(count).toBeLessThanOrEqual((complete + 1) * weight);
    }
  });
}

describe('turns', () => {
  it('give queues what their weights say, within one turn at any time, and starve none', () => {
    fc.assert(
      fc.property(weights, (each) => {
        const desk = new Desk();
        each.forEach((weight, queue) => void desk.setup.queue(queue, { weight }));
        each.forEach((_, queue) => void desk.submit(queue, 60));
        const started = Array.from({ length: 50 }, () => desk.take()!.queue);
        expectShares(started, new Map(each.map((weight, queue) => [queue, weight])));
      }),
    );
  });

  it('give tenants what their weights say, however many queues each of them has', () => {
    fc.assert(
      fc.property(weights, fc.integer({ min: 1, max: 4 }), (each, queuesOfFirst) => {
        const desk = new Desk();
        each.forEach(
          (weight, i) => void desk.setup.tenants.set(`t${i}`, { weight, rate: null, fullAt: 0, debt: 0 }),
        );
        each.forEach((_, i) => void desk.setup.queue(i, { tenant: `t${i}` }));
        for (let extra = 0; extra < queuesOfFirst; extra++) {
          desk.setup.queue(100 + extra, { tenant: 't0' });
          desk.submit(100 + extra, 60);
        }
        each.forEach((_, i) => void desk.submit(i, 60));
        const started = Array.from({ length: 50 }, () => desk.take()!.tenant);
        expectShares(started, new Map(each.map((weight, i) => [`t${i}`, weight])));
      }),
    );
  });

  it('are those of a plain model, whatever comes and goes', () => {
    const step = fc.oneof(
      fc.record({ queue: fc.nat(7), count: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ take: fc.integer({ min: 1, max: 12 }) }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 11, maxLength: 11 }),
        fc.array(step, { maxLength: 60 }),
        (each, steps) => {
          const desk = new Desk();
          for (const i of [0, 1, 2])
            desk.setup.tenants.set(`t${i}`, { weight: each[8 + i]!, rate: null, fullAt: 0, debt: 0 });
          for (let queue = 0; queue < 8; queue++) {
            desk.setup.queue(queue, { tenant: `t${queue % 3}`, weight: each[queue]! });
          }
          const model = new PlainShares(desk);
          for (const now of steps) {
            if ('take' in now) {
              for (let i = 0; i < now.take; i++) expect(desk.take()?.queue).toBe(model.take());
            } else {
              desk.submit(now.queue, now.count);
              model.submit(now.queue, now.count);
            }
          }
        },
      ),
    );
  });

  it('are not saved up: a queue that had nothing to start gets no more than its share afterwards', () => {
    const desk = new Desk();
    desk.setup.queue(1, { weight: 2 });
    desk.submit(1, 1);
    desk.submit(2, 40);
    expect(desk.queuesOf(21)).toEqual([1, ...Array.from({ length: 20 }, () => 2)]);
    desk.submit(1, 10);
    expect(desk.queuesOf(7)).toEqual([2, 1, 1, 2, 1, 1, 2]);
  });

  it('are taken together by takers that ask at the same time, whoever of them asks next', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 30 }), (takers) => {
        const desk = new Desk();
        for (const queue of [0, 1, 2, 3, 4, 5]) {
          desk.setup.queue(queue, { tenant: `t${queue % 3}` });
          desk.submit(queue, 30);
        }
        const walks = [0, 1, 2, 3].map(() => desk.shares.round(EVERYTHING));
        const got = takers.map((i) => desk.backlog.take(walks[i]!, () => true, desk.clock.now())?.queue);
        expect(got).toEqual(takers.map((_, i) => i % 6));
      }),
    );
  });

  it('of a queue that others serve too starve no queue beside it', () => {
    const desk = new Desk();
    desk.setup.queue(1, { weight: 2 });
    desk.submit(1, 50);
    desk.submit(2, 50);
    const both = desk.join(['q1', 'q2']);
    const one = desk.join(['q1']);
    const got: (number | undefined)[] = [];
    for (let i = 0; i < 12; i++) {
      got.push(desk.take(both)?.queue);
      expect(desk.take(one)?.queue).toBe(1);
    }
    expect(got.filter((queue) => queue === 2)).toHaveLength(4);
  });

  it('of a tenant with workers of its own starve no other tenant at the shared ones', () => {
    const desk = new Desk();
    desk.setup.tenants.set('a', { weight: 2, rate: null, fullAt: 0, debt: 0 });
    desk.setup.queue(1, { tenant: 'a' });
    desk.setup.queue(2, { tenant: 'b' });
    desk.submit(1, 50);
    desk.submit(2, 50);
    const own = desk.join(null, 'a');
    const got: (string | undefined)[] = [];
    for (let i = 0; i < 12; i++) {
      got.push(desk.take()?.tenant);
      expect(desk.take(own)?.tenant).toBe('a');
    }
    expect(got.filter((tenant) => tenant === 'b')).toHaveLength(4);
  });
});

describe('a scope', () => {
  it('asks each queue that has nothing for it once on a round, however many jobs it takes elsewhere', () => {
    const desk = new Desk();
    for (let queue = 1; queue <= 20; queue++) desk.submit(queue, 1, { needs: 7 });
    desk.submit(50, 30, { needs: 8 });
    const round = desk.shares.round(EVERYTHING);
    const asked: number[] = [];
    const canRun = (needs: number) => {
      asked.push(needs);
      return needs === 8;
    };
    for (let i = 0; i < 30; i++) expect(desk.backlog.take(round, canRun, desk.clock.now())?.queue).toBe(50);
    expect(desk.backlog.take(round, canRun, desk.clock.now())).toBeUndefined();
    expect(asked.filter((needs) => needs === 7)).toHaveLength(20);
  });

  it('gets jobs of the queues it names, of the tenant it serves, and of no other', () => {
    const desk = new Desk();
    desk.setup.queue(3, { tenant: 'other', name: 'q1' });
    const named = desk.join(['q1', 'q9'], 'default');
    for (const queue of [1, 2, 3]) desk.submit(queue, 2);
    expect(desk.queuesOf(3, named)).toEqual([1, 1, undefined]);
    // A queue that comes later is met like one that was there before.
    desk.submit(9, 1);
    expect(desk.queuesOf(2, named)).toEqual([9, undefined]);
    expect(desk.queuesOf(3, desk.join(null, 'other'))).toEqual([3, 3, undefined]);
    expect(desk.queuesOf(3, desk.join(null))).toEqual([2, 2, undefined]);
  });

  it('that comes again after all of its kind had left finds what waits by then', () => {
    const desk = new Desk();
    const scope = desk.join(['q1']);
    desk.submit(1, 1);
    desk.shares.leave(scope);
    desk.submit(1, 1);
    expect(desk.queuesOf(3, desk.join(['q1']))).toEqual([1, 1, undefined]);
  });
});

describe('room that gangs hold', () => {
  it('in a queue is left by its other jobs, and given back', () => {
    const desk = new Desk();
    desk.setup.queue(1, { concurrency: 3 });
    desk.submit(1, 5);
    desk.shares.hold(new Map([[1, { jobs: 2, keys: new Map() }]]));
    expect(desk.queuesOf(2)).toEqual([1, undefined]);
    desk.shares.hold(new Map());
    expect(desk.queuesOf(3)).toEqual([1, 1, undefined]);
  });

  it('of a concurrency key parks the jobs of that key only', () => {
    const desk = new Desk();
    desk.setup.queue(1, { keyConcurrency: 1 });
    desk.submit(1, 2, { key: 'a' });
    desk.submit(1, 1, { key: 'b' });
    desk.shares.hold(new Map([[1, { jobs: 1, keys: new Map([['a', 1]]) }]]));
    expect(desk.take()?.key).toBe('b');
    expect(desk.take()).toBeUndefined();
    desk.shares.hold(new Map());
    expect(desk.take()?.key).toBe('a');
  });

  it('lets nobody draw on a rate that a gang waits for', () => {
    const desk = new Desk();
    desk.setup.queue(1, { rate: { limit: 10, perMs: 1_000, burst: 5 } });
    desk.submit(1, 3);
    desk.submit(2, 1);
    desk.shares.reserveRates(new Set([1]), new Set());
    expect(desk.queuesOf(2)).toEqual([2, undefined]);
    desk.shares.reserveRates(new Set(), new Set());
    expect(desk.take()?.queue).toBe(1);
  });
});

describe('a rate', () => {
  const HOURLY = { limit: 1, perMs: 3_600_000, burst: 1 };

  it('of a tenant stays as it is when something else about the tenant changes', () => {
    const desk = new Desk();
    desk.setup.tenants.set('default', { weight: 1, rate: HOURLY, fullAt: 0, debt: 0 });
    desk.submit(1, 5);
    expect(desk.queuesOf(2)).toEqual([1, undefined]);
    desk.setup.tenants.set('default', { weight: 5, rate: { ...HOURLY }, fullAt: 0, debt: 0 });
    desk.shares.tenantChanged('default');
    expect(desk.take()).toBeUndefined();
    desk.clock.advance(3_600_000);
    expect(desk.queuesOf(2)).toEqual([1, undefined]);
  });

  it('of a tenant lets another job through at once when the one it let through does not start', () => {
    const desk = new Desk();
    desk.setup.tenants.set('default', { weight: 1, rate: HOURLY, fullAt: 0, debt: 0 });
    desk.submit(1, 2);
    const entry = desk.take()!;
    expect(desk.take()).toBeUndefined();
    desk.backlog.abandon(entry);
    expect(desk.take()?.queue).toBe(1);
    expect(desk.take()).toBeUndefined();
  });

  it('that was raised is not held back by what an earlier leader wrote under the lower one', () => {
    const desk = new Desk();
    const fullAt = desk.clock.now() + 3_600_000;
    const rate = { limit: 100, perMs: 1_000, burst: 5 };
    desk.setup.queue(1, { rate, fullAt });
    desk.setup.tenants.set('t', { weight: 1, rate, fullAt, debt: 0 });
    desk.setup.queue(2, { tenant: 't' });
    desk.submit(1, 2);
    desk.submit(2, 2);
    expect(desk.take()).toBeUndefined();
    desk.clock.advance(10);
    expect(desk.queuesOf(3)).toEqual([1, 2, undefined]);
  });

  it('holds up no other queue and no other tenant', () => {
    const desk = new Desk();
    desk.setup.queue(1, { rate: HOURLY });
    desk.setup.tenants.set('slow', { weight: 9, rate: HOURLY, fullAt: 0, debt: 0 });
    desk.setup.queue(2, { tenant: 'slow' });
    for (const queue of [1, 2, 3]) desk.submit(queue, 4);
    expect(desk.queuesOf(7)).toEqual([1, 2, 3, 3, 3, 3, undefined]);
  });
});

describe('a limit', () => {
  it('holds up no other queue, and lets the next job through when one ends', () => {
    const desk = new Desk();
    desk.setup.queue(1, { concurrency: 2 });
    desk.submit(1, 4);
    desk.submit(2, 2);
    const [first, ...rest] = Array.from({ length: 5 }, () => desk.take());
    expect([first, ...rest].map((entry) => entry?.queue)).toEqual([1, 2, 1, 2, undefined]);
    desk.shares.release(first!);
    expect(desk.queuesOf(2)).toEqual([1, undefined]);
  });

  it('that is lowered while jobs run lets none through until enough have ended', () => {
    const desk = new Desk();
    desk.submit(1, 6);
    const running = Array.from({ length: 3 }, () => desk.take()!);
    desk.setup.queue(1, { concurrency: 1 });
    desk.shares.queueChanged(1);
    for (const entry of running) {
      expect(desk.take()).toBeUndefined();
      desk.shares.release(entry);
    }
    expect(desk.queuesOf(2)).toEqual([1, undefined]);
    desk.setup.queue(1, { concurrency: null });
    desk.shares.queueChanged(1);
    expect(desk.queuesOf(3)).toEqual([1, 1, undefined]);
  });

  it('of a key counts jobs of all needs in a queue, and none of other queues', () => {
    const desk = new Desk();
    desk.submit(1, 1, { needs: 1, key: 'k' });
    desk.submit(1, 1, { needs: 2, key: 'k' });
    desk.submit(1, 1, { needs: 2, key: 'other' });
    desk.submit(2, 1, { needs: 1, key: 'k' });
    const taken = Array.from({ length: 4 }, () => desk.take());
    expect(taken.map((entry) => entry && [entry.queue, entry.key])).toEqual([
      [1, 'k'],
      [2, 'k'],
      [1, 'other'],
      undefined,
    ]);
    desk.shares.release(taken[0]!);
    expect(desk.take()).toMatchObject({ queue: 1, key: 'k', needs: 2 });
  });
});
