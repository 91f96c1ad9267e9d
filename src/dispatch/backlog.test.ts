import { describe, expect, it, vi } from 'vitest';
import { SharesForTests } from '../../test/shares-for-tests.js';
import { TestClock } from '../../test/test-clock.js';
import type { StoredDefinition } from '../store/job-row.js';
import type { Waiting } from '../store/read-backlog.js';
import { Backlog } from './backlog.js';

function setUp(options: { segmentLimit?: number; isTaken?: (id: string) => boolean } = {}) {
  const clock = new TestClock();
  const onReady = vi.fn();
  const { shares } = new SharesForTests(clock, onReady);
  const backlog = new Backlog({
    clock,
    shares,
    crowdedAt: 1_000_000,
    segmentLimit: options.segmentLimit ?? 100,
    isTaken: options.isTaken ?? (() => false),
  });
  const waiting = (id: string, change: Partial<Waiting> = {}): Waiting => ({
    id,
    tenant: 'default',
    queue: 1,
    needs: 1,
    lane: 0,
    key: null,
    rank: 5,
    runAt: clock.now(),
    fence: 1,
    startBefore: null,
    sizeKib: 0,
    ...change,
  });
  const take = (fits: (needs: number) => boolean = () => true) =>
    backlog.take(shares.round({ tenant: null, queues: null }), fits, clock.now());
  return { backlog, clock, onReady, waiting, take };
}

describe('a backlog', () => {
  it('tells when a job can start, at once or on its millisecond', () => {
    const { backlog, clock, onReady, waiting, take } = setUp();
    backlog.add(waiting('now'));
    expect(onReady).toHaveBeenCalledTimes(1);
    expect(take()?.id).toBe('now');
    backlog.add(waiting('soon', { runAt: clock.now() + 250 }));
    clock.advance(249);
    expect(onReady).toHaveBeenCalledTimes(1);
    expect(take()).toBeUndefined();
    clock.advance(1);
    expect(onReady).toHaveBeenCalledTimes(2);
    expect(take()?.id).toBe('soon');
  });

  it('sets its timer again for a job that is due before the one it waits for', () => {
    const { backlog, clock, waiting, take } = setUp();
    backlog.add(waiting('later', { runAt: clock.now() + 900 }));
    backlog.add(waiting('sooner', { runAt: clock.now() + 100 }));
    clock.advance(100);
    expect(take()?.id).toBe('sooner');
    expect(take()).toBeUndefined();
    clock.advance(800);
    expect(take()?.id).toBe('later');
  });

  it('lets queues take turns, whatever the priorities in each', () => {
    const { backlog, waiting, take } = setUp();
    for (let i = 0; i < 3; i++) backlog.add(waiting(`a${i}`, { queue: 1, rank: 1 }));
    for (let i = 0; i < 3; i++) backlog.add(waiting(`b${i}`, { queue: 2, rank: 9 }));
    expect([take()?.id, take()?.id, take()?.id, take()?.id]).toEqual(['a0', 'b0', 'a1', 'b1']);
  });

  it('passes over jobs that need what the worker lacks, and keeps them', () => {
    const { backlog, waiting, take } = setUp();
    backlog.add(waiting('first', { needs: 1, rank: 1 }));
    backlog.add(waiting('second', { needs: 2 }));
    expect(take((needs) => needs === 2)?.id).toBe('second');
    expect(take((needs) => needs === 2)).toBeUndefined();
    expect(take()?.id).toBe('first');
  });

  it('gives a job out once, however often it hears of it', () => {
    const { backlog, waiting, take } = setUp();
    backlog.add(waiting('job'));
    backlog.add(waiting('job'));
    expect(backlog.size).toBe(1);
    expect(take()?.id).toBe('job');
    expect(take()).toBeUndefined();
  });

  it('ignores news of a job that is running or being claimed', () => {
    const taken = new Set(['job']);
    const { backlog, waiting } = setUp({ isTaken: (id) => taken.has(id) });
    backlog.add(waiting('job'), true);
    expect(backlog.find('job')).toBeUndefined();
  });

  it('follows a job to its next fence and never back', () => {
    const { backlog, waiting } = setUp();
    backlog.add(waiting('job', { fence: 1 }));
    backlog.add(waiting('job', { fence: 2 }));
    expect(backlog.find('job')?.fence).toBe(2);
    backlog.add(waiting('job', { fence: 1 }));
    backlog.add(waiting('job', { fence: 1 }), true);
    expect(backlog.find('job')?.fence).toBe(2);
    expect(backlog.size).toBe(1);
  });

  it('moves a job whose time or priority was changed', () => {
    const { backlog, clock, waiting, take } = setUp();
    backlog.add(waiting('job'));
    backlog.add(waiting('other'));
    backlog.add(waiting('job', { runAt: clock.now() + 1_000 }), true);
    expect(take()?.id).toBe('other');
    expect(take()).toBeUndefined();
    backlog.add(waiting('job', { rank: 1 }), true);
    expect(take()?.id).toBe('job');
  });

  it('does not give out what was taken away', () => {
    const { backlog, clock, waiting, take } = setUp();
    backlog.add(waiting('due'));
    backlog.add(waiting('upcoming', { runAt: clock.now() + 10 }));
    backlog.remove('due');
    backlog.remove('upcoming');
    backlog.remove('never heard of');
    clock.advance(10);
    expect(take()).toBeUndefined();
    expect(backlog.size).toBe(0);
  });

  it('stays in order when most of what waits is taken away', () => {
    const { backlog, waiting, take } = setUp({ segmentLimit: 1_000 });
    for (let i = 0; i < 500; i++) backlog.add(waiting(String(i).padStart(3, '0')));
    for (let i = 0; i < 500; i++) if (i % 7 !== 3) backlog.remove(String(i).padStart(3, '0'));
    const order: string[] = [];
    for (let entry = take(); entry; entry = take()) order.push(entry.id);
    expect(order).toHaveLength(71);
    expect(order).toEqual([...order].sort());
  });

  it('asks for no more pages at a time than it may, and for each once', () => {
    const { backlog, waiting } = setUp();
    backlog.rewindAll([1, 2, 3].map((queue) => ({ queue, needs: 1, lane: 0, rank: 5, runAt: -1, id: '0' })));
    const first = backlog.wantedPages(2);
    expect(first.map((cursor) => cursor.queue)).toEqual([1, 2]);
    expect(backlog.wantedPages(2).map((cursor) => cursor.queue)).toEqual([3]);
    expect(backlog.wantedPages(2)).toEqual([]);
    for (const cursor of first) backlog.endRead(cursor, null);
    expect(backlog.wantedPages(2)).toEqual([]);
    backlog.add(waiting('job'));
    expect(backlog.find('job')).toBeDefined();
  });

  it('asks again for what it pushed out when more became due than it has room for', () => {
    const { backlog, clock, waiting, take } = setUp({ segmentLimit: 4 });
    for (let i = 0; i < 4; i++) backlog.add(waiting(`due-${i}`));
    for (let i = 0; i < 4; i++) backlog.add(waiting(`soon-${i}`, { runAt: clock.now() + 10 }));
    clock.advance(10);
    expect([take()?.id, take()?.id, take()]).toEqual(['due-0', 'due-1', undefined]);
    expect(backlog.wantedPages(10).map((cursor) => cursor.id)).toEqual(['due-2']);
  });

  it('leaves jobs at or after a cursor to the table', () => {
    const { backlog, clock, waiting } = setUp();
    backlog.rewindAll([{ queue: 1, needs: 1, lane: 0, rank: 5, runAt: clock.now(), id: 'm' }]);
    backlog.add(waiting('n'));
    backlog.add(waiting('a'));
    backlog.add(waiting('x', { rank: 4 }));
    expect([backlog.find('n'), backlog.find('a')?.id, backlog.find('x')?.id]).toEqual([undefined, 'a', 'x']);
  });

  it('takes nothing in and starts nothing once it is stopped', () => {
    const { backlog, clock, onReady, waiting } = setUp();
    backlog.add(waiting('upcoming', { runAt: clock.now() + 10 }));
    backlog.stop();
    backlog.add(waiting('job'));
    clock.advance(10);
    expect(backlog.find('job')).toBeUndefined();
    expect(onReady).not.toHaveBeenCalled();
  });

  it('remembers whole jobs only as long as there is room for them, and forgets them when they go', () => {
    const { backlog, waiting, take } = setUp();
    const megabyte = 'x'.repeat(2 ** 20);
    const row = (id: string) => ({ id, payload: megabyte, definition: {} as StoredDefinition });
    const add = (id: string) => {
      backlog.add(waiting(id, { row: row(id) }));
      return backlog.find(id)!;
    };
    const entries = Array.from({ length: 40 }, (_, i) => add(`job-${String(i).padStart(2, '0')}`));
    const remembered = entries.filter((entry) => entry.row).length;
    expect(remembered).toBe(32);
    const taken = take()!;
    expect(taken.row).toBeTruthy();
    backlog.claimed(taken);
    expect([taken.row, add('next').row?.id]).toEqual([null, 'next']);
    expect(add('one too many').row).toBeNull();
  });
});
