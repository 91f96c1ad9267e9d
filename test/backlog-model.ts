import { laneOf } from '../src/core/limits.js';
import { Backlog } from '../src/dispatch/backlog.js';
import type { Entry } from '../src/dispatch/segment.js';
import type { Shares } from '../src/dispatch/shares.js';
import type { Cursor, Waiting } from '../src/store/read-backlog.js';
import { SharesForTests } from './shares-for-tests.js';
import { TestClock } from './test-clock.js';

/** A row of the live table: a job that waits, or runs under the fence it waited for. */
interface Row extends Waiting {
  running: boolean;
}

/** What a new job of the model is like; times are relative to now. */
export interface NewJob {
  readonly queue: number;
  readonly needs: number;
  /** The concurrency key; one job of a key runs at a time. */
  readonly key: string | null;
  readonly rank: number;
  readonly dueIn: number;
}

interface PageRead {
  readonly cursors: readonly Cursor[];
  /** The rows as the statement saw them; undefined until it has run. */
  pages: Waiting[][] | undefined;
}

/** Smaller than any page of the product, and the smallest with which a cursor can move on. */
const PAGE_JOBS = 3;
const MAX_CURSORS = 2;
/** More pages in a row than this model can hold jobs: reading goes round in circles. */
const MAX_READS_IN_A_ROW = 500;

/**
 * The leader's dealings with a backlog, over a table in memory. Every step that takes time in the product has a
 * beginning and an end here, so that anything can happen in between. The claim refuses what the statement
 * refuses: a job that is gone, and any fence but the next.
 */
export class BacklogModel {
  readonly clock = new TestClock();
  private backlog: Backlog;
  private shares!: Shares;
  /** What was wrong at the moment it happened. */
  readonly violations: string[] = [];
  /** Jobs and fences that were claimed, in order. */
  readonly started: string[] = [];
  private readonly table = new Map<string, Row>();
  private readonly turns = new Set<string>();
  private readonly running = new Set<string>();
  private readonly lateHints: Waiting[] = [];
  /** Jobs of which the backlog has not been told; once must be enough. */
  private readonly fresh = new Set<string>();
  private lookedBack: Waiting[] | undefined;
  /** The first waiting job of every segment, as the statement saw them. */
  private found: Waiting[] | undefined;
  /** Whether this leader has found everything that waited when it began. */
  private isLoaded = true;
  private read: PageRead | undefined;
  private intents: Entry[] = [];
  private refused: string[] = [];
  private exempt = 0;
  private nextId = 0;

  constructor(private readonly segmentLimit: number) {
    this.backlog = this.newBacklog();
  }

  /** Jobs of the table that nobody runs. */
  waiting(): Waiting[] {
    return [...this.table.values()].filter((row) => !row.running);
  }

  /** A submission commits; its hint arrives at once, late, or never. */
  submit(job: NewJob, hint: 'now' | 'late' | 'lost'): void {
    this.nextId += 1;
    const id = this.nextId.toString(16).padStart(12, '0');
    const { dueIn, ...rest } = job;
    const row: Row = {
      ...rest,
      id,
      tenant: 'default',
      lane: laneOf(job.key),
      runAt: this.clock.now() + dueIn,
      fence: 1,
      startBefore: null,
      sizeKib: 0,
      running: false,
    };
    this.table.set(id, row);
    if (hint === 'now') this.add(row);
    else this.fresh.add(id);
    if (hint === 'late') this.lateHints.push({ ...row });
  }

  deliverHint(): void {
    const hint = this.lateHints.shift();
    if (hint) this.add(hint);
  }

  beginLookBack(): void {
    this.lookedBack ??= [...this.fresh].flatMap((id) => this.table.get(id) ?? []).map((row) => ({ ...row }));
    for (const row of this.lookedBack) this.fresh.delete(row.id);
  }

  endLookBack(): void {
    for (const row of this.lookedBack ?? []) this.add(row);
    this.lookedBack = undefined;
  }

  /**
   * The last claim commits, and a new leader begins. It knows what runs, and reads on after that before it has found
   * everything else; what was on its way to the old one is lost.
   */
  restart(): void {
    this.endClaim();
    this.backlog.stop();
    this.backlog = this.newBacklog();
    this.isLoaded = false;
    for (const each of ['read', 'lookedBack', 'found'] as const) this[each] = undefined;
    this.refused = [];
    this.fresh.clear();
    this.backlog.rewindAll([
      ...firstOfShelves(
        [...this.running].map((id) => this.table.get(id)!),
        -1,
      ),
    ]);
  }

  beginFind(): void {
    this.found ??= firstOfShelves(this.waiting(), 1).map((row) => ({ ...row }));
  }

  endFind(): void {
    if (!this.found) return;
    this.backlog.rewindAll(this.found);
    this.found = undefined;
    this.isLoaded = true;
  }

  beginRead(): boolean {
    if (this.read) return true;
    const cursors = this.backlog.wantedPages(MAX_CURSORS);
    if (cursors.length === 0) return false;
    this.read = { cursors, pages: undefined };
    return true;
  }

  runRead(): void {
    if (this.read) this.read.pages ??= this.read.cursors.map((cursor) => this.page(cursor));
  }

  endRead(): void {
    if (!this.read) return;
    this.runRead();
    const { cursors, pages } = this.read;
    this.read = undefined;
    cursors.forEach((cursor, i) => {
      const page = pages![i]!;
      const last = page.at(-1);
      this.backlog.endRead(cursor, page.length === PAGE_JOBS && last ? last : null);
      for (const row of page) this.add(row);
    });
  }

  failRead(): void {
    for (const cursor of this.read?.cursors ?? []) this.backlog.abandonRead(cursor);
    this.read = undefined;
  }

  readAllWanted(): void {
    this.endRead();
    for (let reads = 0; this.beginRead(); reads++) {
      if (reads > MAX_READS_IN_A_ROW) {
        this.violations.push('pages were read again and again without an end');
        this.failRead();
        return;
      }
      this.endRead();
    }
  }

  /** Takes due jobs for a claim, which is then in flight; `fits` says which needs the workers have. */
  beginClaim(max: number, fits: (needs: number) => boolean): number {
    let count = 0;
    for (let entry = this.takeNext(fits); entry; entry = this.takeNext(fits)) {
      const what = `${entry.id}#${entry.fence}`;
      if (this.turns.has(entry.id) || this.running.has(entry.id)) {
        this.violations.push(`${what} was given out while it was taken`);
      }
      if (entry.runAt > this.clock.now()) this.violations.push(`${what} was given out before it was due`);
      this.checkKey(entry);
      this.turns.add(entry.id);
      this.intents.push(entry);
      count += 1;
      if (count >= max) break;
    }
    return count;
  }

  endClaim(): void {
    for (const entry of this.intents.splice(0)) {
      const { id, fence } = entry;
      const row = this.table.get(id);
      this.turns.delete(id);
      if (row && !row.running && row.fence === fence) {
        row.running = true;
        this.running.add(id);
        this.backlog.claimed(entry);
        this.started.push(`${id}#${fence}`);
      } else {
        this.backlog.abandon(entry);
        this.refused.push(id);
      }
    }
  }

  /** The server refuses the whole statement: everything waits again. */
  failClaim(): void {
    const intents = this.intents.splice(0);
    for (const { id } of intents) this.turns.delete(id);
    for (const entry of intents) {
      this.exempt += 1;
      this.backlog.abandon(entry);
      this.backlog.add(entry, true);
      this.checkSize();
    }
  }

  /** What a claim refused is read again by id. */
  lookAgain(): void {
    for (const id of this.refused.splice(0)) {
      const row = this.table.get(id);
      if (row && !row.running) this.add(row, true);
    }
  }

  /** Ends one running job. */
  finish(pick: number): void {
    const row = this.pickRow(pick, (each) => each.running);
    if (!row) return;
    this.running.delete(row.id);
    this.shares.release(row);
    this.table.delete(row.id);
  }

  /** One running job fails and waits again under the next fence. */
  retry(pick: number, dueIn: number): void {
    const row = this.pickRow(pick, (each) => each.running);
    if (!row) return;
    const again: Row = { ...row, running: false, fence: row.fence + 1, runAt: this.clock.now() + dueIn };
    this.table.set(row.id, again);
    this.running.delete(row.id);
    this.shares.release(row);
    this.add(again, true);
  }

  /** One waiting job of which no older news is on its way gets another time and priority, in its turn. */
  change(pick: number, rank: number, dueIn: number): void {
    const news = [...this.lateHints, ...(this.lookedBack ?? []), ...(this.read?.pages?.flat() ?? [])];
    const old = new Set(news.map((each) => each.id));
    const row = this.pickRow(pick, (each) => !each.running && !this.turns.has(each.id) && !old.has(each.id));
    if (!row) return;
    const changed: Row = { ...row, rank, runAt: this.clock.now() + dueIn };
    this.table.set(row.id, changed);
    this.backlog.remove(row.id);
    this.add(changed, true);
  }

  /** One waiting job is cancelled, in its turn. */
  cancel(pick: number): void {
    const row = this.pickRow(pick, (each) => !each.running && !this.turns.has(each.id));
    if (!row) return;
    this.table.delete(row.id);
    this.backlog.remove(row.id);
  }

  advance(ms: number): void {
    this.clock.advance(ms);
    this.checkSize();
  }

  /** Lets everything in flight end, then starts and ends whatever can start now. */
  drain(): void {
    this.endClaim();
    this.lookAgain();
    this.endRead();
    this.endFind();
    if (!this.isLoaded) {
      this.beginFind();
      this.endFind();
    }
    while (this.lateHints.length > 0) this.deliverHint();
    this.endLookBack();
    this.beginLookBack();
    this.endLookBack();
    do {
      this.readAllWanted();
      this.endClaim();
      this.lookAgain();
      while (this.running.size > 0) this.finish(0);
    } while (this.beginClaim(Number.POSITIVE_INFINITY, () => true) > 0);
  }

  /** Whatever runs or is about to: one job of a key at a time. */
  private checkKey(entry: Entry): void {
    const busy = [...this.intents, ...[...this.running].map((id) => this.table.get(id)!)];
    if (entry.key !== null && busy.some((each) => each.key === entry.key && each.queue === entry.queue)) {
      this.violations.push(`${entry.id} was given out while another job of its key runs`);
    }
  }

  private newBacklog(): Backlog {
    const { shares } = new SharesForTests(this.clock);
    this.shares = shares;
    for (const id of this.running) shares.reserve(this.table.get(id)!);
    return new Backlog({
      clock: this.clock,
      shares,
      segmentLimit: this.segmentLimit,
      crowdedAt: 1_000_000,
      isTaken: (id) => this.running.has(id),
    });
  }

  private takeNext(fits: (needs: number) => boolean): Entry | undefined {
    const round = this.shares.round({ tenant: null, queues: null });
    return this.backlog.take(round, fits, this.clock.now());
  }

  private add(waiting: Waiting, always = false): void {
    const { id, tenant, queue, needs, lane, key, rank, runAt, fence, startBefore, sizeKib } = waiting;
    if (always) this.exempt += 1;
    this.backlog.add(
      { id, tenant, queue, needs, lane, key, rank, runAt, fence, startBefore, sizeKib },
      always,
    );
    this.checkSize();
  }

  private checkSize(): void {
    for (const queue of new Set([...this.table.values()].map((row) => row.queue))) {
      for (const segment of this.backlog.segmentsOf(queue)) {
        const upcoming = segment.size - segment.readyCount;
        if (Math.max(segment.readyCount, upcoming) > this.segmentLimit + this.exempt) {
          this.violations.push(`${segment.readyCount} due and ${upcoming} upcoming jobs are in memory`);
        }
      }
    }
  }

  private page(cursor: Cursor): Waiting[] {
    return [...this.table.values()]
      .filter((row) => row.queue === cursor.queue && row.needs === cursor.needs)
      .filter((row) => row.lane === cursor.lane && row.rank === cursor.rank)
      .filter((row) => row.runAt > cursor.runAt || (row.runAt === cursor.runAt && row.id >= cursor.id))
      .sort((a, b) => a.runAt - b.runAt || (a.id < b.id ? -1 : 1))
      .slice(0, PAGE_JOBS)
      .map((row) => ({ ...row }));
  }

  private pickRow(pick: number, suits: (row: Row) => boolean): Row | undefined {
    const rows = [...this.table.values()].filter(suits);
    return rows[pick % Math.max(1, rows.length)];
  }
}

/** The first job of each segment in the order of the table, or the last when `direction` is -1. */
function firstOfShelves<T extends Waiting>(rows: readonly T[], direction: 1 | -1): T[] {
  const inOrder = [...rows].sort((a, b) => direction * (a.runAt - b.runAt || (a.id < b.id ? -1 : 1)));
  const first = new Map<string, T>();
  for (const row of inOrder) {
    const segment = [row.queue, row.needs, row.lane, row.rank].join();
    if (!first.has(segment)) first.set(segment, row);
  }
  return [...first.values()];
}
