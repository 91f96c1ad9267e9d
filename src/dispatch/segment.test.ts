import { describe, expect, it } from 'vitest';
import { type Entry, Segment } from './segment.js';

const NOW = 1_000_000;
const LIMIT = 8;
let made = 0;

function entry(runAt: number, rank = 5): Entry {
  made += 1;
  const id = made.toString(16).padStart(8, '0');
  return {
    id,
    tenant: 'default',
    queue: 1,
    needs: 1,
    lane: 0,
    key: null,
    rank,
    runAt,
    fence: 1,
    startBefore: null,
    sizeKib: 0,
    where: 'out',
  };
}

function segment(): { segment: Segment; evicted: Entry[] } {
  const evicted: Entry[] = [];
  return {
    segment: new Segment(
      1,
      1,
      0,
      () => LIMIT,
      (each) => evicted.push(each),
    ),
    evicted,
  };
}

function fill(into: Segment, count: number, runAt: number, rank = 5): Entry[] {
  return Array.from({ length: count }, () => {
    const each = entry(runAt, rank);
    into.add(each, NOW, false);
    return each;
  });
}

describe('a full segment', () => {
  it('pushes the later half of its due jobs out for one that starts sooner', () => {
    const { segment: full, evicted } = segment();
    const jobs = fill(full, LIMIT, NOW - 10);
    const urgent = entry(NOW, 1);
    expect(full.add(urgent, NOW, false)).toBe(true);
    expect(full.head()).toBe(urgent);
    expect(evicted).toEqual(jobs.slice(LIMIT / 2));
    expect(full.hasUnread).toBe(true);
  });

  it('leaves a job to the table that starts after what was pushed out', () => {
    const { segment: full } = segment();
    fill(full, LIMIT, NOW - 10);
    expect(full.add(entry(NOW), NOW, false)).toBe(false);
    expect(full.size).toBe(LIMIT / 2);
  });

  it('keeps upcoming jobs when due ones flood it, and the other way round', () => {
    const { segment: flooded } = segment();
    const upcoming = fill(flooded, 3, NOW + 500);
    fill(flooded, 3 * LIMIT, NOW - 10, 9);
    expect(flooded.ripen(NOW + 500)).toBe(true);
    expect(flooded.head()).toBe(upcoming[0]);

    const { segment: planned } = segment();
    const due = fill(planned, 3, NOW, 9);
    fill(planned, 3 * LIMIT, NOW + 500, 1);
    expect(planned.readyCount).toBe(3);
    expect(planned.head()).toBe(due[0]);
  });

  it('takes in what no cursor covers in spite of the limit', () => {
    const { segment: full, evicted } = segment();
    fill(full, LIMIT, NOW);
    expect(full.add(entry(NOW), NOW, true)).toBe(true);
    expect(full.size).toBe(LIMIT + 1);
    expect(evicted).toEqual([]);
  });

  it('leaves to the table what does not fit when more becomes due than there is room for', () => {
    const { segment: full } = segment();
    fill(full, LIMIT, NOW - 10);
    fill(full, LIMIT, NOW + 10);
    full.ripen(NOW + 10);
    expect(full.size).toBe(LIMIT / 2);
    expect(full.hasUnread).toBe(true);
  });
});

describe('what a segment wants to read', () => {
  it('is nothing while enough is in memory and nothing better can lie in the table', () => {
    const { segment: full } = segment();
    fill(full, LIMIT + 1, NOW);
    expect(full.hasUnread).toBe(true);
    expect(full.wanted(NOW)).toEqual([]);
  });

  it('is the next page when memory runs low', () => {
    const { segment: low, evicted } = segment();
    fill(low, LIMIT + 1, NOW);
    low.remove(low.head()!);
    expect(low.wanted(NOW)).toEqual([
      { queue: 1, needs: 1, lane: 0, rank: 5, runAt: NOW, id: evicted[0]!.id },
    ]);
  });

  it('is due work of a higher priority, however much of a lower one is in memory', () => {
    const { segment: full } = segment();
    fill(full, LIMIT, NOW, 9);
    full.rewind(1, { runAt: NOW - 5, id: '0' });
    full.rewind(9, { runAt: NOW, id: 'ffffffff' });
    expect(full.wanted(NOW).map((cursor) => cursor.rank)).toEqual([1]);
  });

  it('is work that is due within moments, unless memory holds enough that comes before', () => {
    const { segment: later } = segment();
    fill(later, LIMIT, NOW + 60_000);
    later.rewind(5, { runAt: NOW + 1_000, id: '0' });
    expect(later.wanted(NOW)).toHaveLength(1);

    const { segment: sooner } = segment();
    fill(sooner, LIMIT, NOW + 500);
    sooner.rewind(5, { runAt: NOW + 1_000, id: '0' });
    expect(sooner.wanted(NOW)).toEqual([]);
  });

  it('is not asked for twice while the page is on its way', () => {
    const { segment: reading } = segment();
    reading.rewind(5, { runAt: NOW, id: '0' });
    const [cursor] = reading.wanted(NOW);
    reading.beginRead(cursor!);
    expect(reading.wanted(NOW)).toEqual([]);
    reading.abandonRead(cursor!);
    expect(reading.wanted(NOW)).toEqual([cursor]);
  });

  it('is a job that came too late for the page', () => {
    const { segment: reading } = segment();
    reading.rewind(5, { runAt: NOW, id: '0' });
    const [cursor] = reading.wanted(NOW);
    reading.beginRead(cursor!);
    const late = entry(NOW);
    expect(reading.add(late, NOW, false)).toBe(false);
    reading.endRead(cursor!, null);
    expect(reading.wanted(NOW)).toEqual([{ ...cursor, runAt: late.runAt, id: late.id }]);
  });

  it('is a job that was pushed out while the page was read', () => {
    const { segment: reading, evicted } = segment();
    reading.rewind(5, { runAt: NOW, id: '0' });
    const [cursor] = reading.wanted(NOW);
    reading.beginRead(cursor!);
    for (let i = 0; i < LIMIT; i++) reading.add(entry(NOW), NOW, true);
    reading.add(entry(NOW, 1), NOW, false);
    reading.endRead(cursor!, null);
    for (let head = reading.head(); head; head = reading.head()) reading.remove(head);
    expect(reading.wanted(NOW)).toEqual([{ ...cursor, runAt: NOW, id: evicted[0]!.id }]);
  });
});
