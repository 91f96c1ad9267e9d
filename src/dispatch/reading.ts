import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { firstUuidAt } from '../core/uuid.js';
import {
  BEFORE_ALL_SHELVES,
  type Cursor,
  findShelves,
  lookBack,
  readPages,
  readWaiting,
  SHELF_START,
  type ShelfRank,
  type Waiting,
} from '../store/read-backlog.js';
import { isBefore } from './shelf.js';
import type { LeaderState } from './state.js';

/** Jobs read from a shelf at once; with many shelves to read, each gets less. */
const PAGE_JOBS = 5_000;
const SMALL_PAGE_JOBS = 100;
const MAX_CURSORS = 200;
/** Pages that are read each by itself at a time; claims need connections too. */
const MAX_SLOW_READS = 2;
/** Shelves found by one statement. */
const MAX_SHELVES = 10_000;
/** Jobs that one statement of the look-back returns. */
const LOOK_BACK_JOBS = 10_000;
const LOOK_BACK_EVERY_MS = 1_000;
const LOOK_BACK_AT_LEAST_EVERY_MS = 3_000;
/** A look-back may use at most this share of the time, so that it never becomes the load it looks for. */
const LOOK_BACK_SHARE = 0.05;
/** A term waits so long for what is in the table; when it takes longer, what is new need not wait for what is old. */
const FIND_WITHIN_MS = 250;
/** How often every shelf is read anew from its start: whatever memory should have missed is found by then. */
const RELOAD_EVERY_MS = 600_000;
/** How wrong the clock of a submitting node may be. */
const CLOCK_ERROR_MS = 2_000;

/**
 * Fills the backlog from the table: pages for shelves that run low, and a look-back for jobs whose hint was
 * lost. A submission becomes visible at most its statement timeout after its id was made, so looking back that
 * far from the last look finds every job.
 */
export class Reading {
  private readonly pages: Loop;
  private readonly watch: Loop;
  private readonly reload: Loop;
  /** When the last look that came to its end began; looks may be far apart when they take long or fail. */
  private lookedAt = 0;
  /** From where on shelves have not been found yet; null when all have. */
  private unfound: ShelfRank | null = BEFORE_ALL_SHELVES;
  /** How many shelves one statement looks for; fewer after it took too long, so that something is found each time. */
  private findAtOnce = MAX_SHELVES;
  /** Pages that are being read each by itself. */
  private readonly slowReads = new Set<Promise<void>>();
  /** The first shelves of the term are being found. */
  private firstFind: Promise<void> = Promise.resolve();

  constructor(
    private readonly state: LeaderState,
    private readonly submitTimeoutMs: number,
    private readonly parts: { onAdmit(): void; onStartBefore(at: number | null): void },
  ) {
    const onError = (loop: string, error: unknown) => {
      if (!state.term.over)
        state.log.warn({ loop, error: messageOf(error) }, 'the backlog could not be read');
    };
    this.pages = new Loop({ name: 'pages', everyMs: 1_000, pass: () => this.readWanted(), onError });
    this.reload = new Loop({ name: 'reload', everyMs: RELOAD_EVERY_MS, pass: () => this.findAll(), onError });
    this.watch = new Loop({
      name: 'look-back',
      everyMs: LOOK_BACK_EVERY_MS,
      pass: () => this.lookBack(),
      onError,
    });
  }

  /**
   * At the start of a term everything that waits is in the table; the first shelves are enough to begin with. When they
   * lie behind so many dead rows that finding them takes long, the term begins all the same: with what is new, and with
   * what comes after the jobs that run, which is where the last leader was.
   */
  async load(): Promise<void> {
    // What is stored from here on may not be among what is found.
    this.lookedAt = this.state.clock.now();
    this.firstFind = this.findSome();
    const found = this.firstFind.then(() => true);
    if (!(await Promise.race([found, pause(FIND_WITHIN_MS, false, { ref: false })]))) this.goOnAfterRunning();
  }

  private goOnAfterRunning(): void {
    const { running, directory, backlog } = this.state;
    const last = new Map<string, Cursor>();
    for (const { place } of running.values()) {
      const before = last.get(shelfKey(place));
      if (directory.knows(place) && (!before || isBefore(before, place))) last.set(shelfKey(place), place);
    }
    backlog.rewindAll([...last.values()]);
  }

  /** Goes on where finding shelves stopped; the next pass begins anew, later if this one took long. */
  private async findAll(): Promise<number> {
    await this.firstFind.catch(() => undefined);
    const startedAt = performance.now();
    while (this.unfound && !this.state.term.over) await this.findSome();
    this.unfound = BEFORE_ALL_SHELVES;
    return Math.max(RELOAD_EVERY_MS, (performance.now() - startedAt) / LOOK_BACK_SHARE);
  }

  private async findSome(): Promise<void> {
    const { directory, backlog, reads } = this.state;
    const limit = this.findAtOnce;
    const shelves = await findShelves(reads, this.unfound ?? BEFORE_ALL_SHELVES, limit).catch((error) => {
      this.findAtOnce = Math.max(1, Math.floor(limit / 10));
      throw error;
    });
    this.findAtOnce = Math.min(MAX_SHELVES, limit * 2);
    await directory.learn(shelves);
    backlog.rewindAll(shelves.filter((shelf) => directory.knows(shelf)));
    this.unfound = shelves.length < limit ? null : shelves.at(-1)!;
    if (this.unfound === null) this.state.isLoaded = true;
    this.pages.wake();
  }

  start(): void {
    this.pages.start();
  }

  /** Looks from now on for what it was not told of. */
  startLooking(): void {
    this.watch.start();
    this.reload.start();
  }

  async stop(): Promise<void> {
    await Promise.all([
      this.pages.stop(),
      this.watch.stop(),
      this.reload.stop(),
      this.firstFind.catch(() => undefined),
      ...this.slowReads,
    ]);
  }

  wake(): void {
    this.pages.wake();
  }

  /** New jobs, as somebody who stored them tells. */
  async hint(jobs: readonly Waiting[]): Promise<void> {
    for (const job of jobs) this.parts.onStartBefore(job.startBefore);
    await this.state.takeIn(jobs, false);
  }

  /** Reads pages until no shelf wants one. */
  async readWanted(): Promise<void> {
    const { state } = this;
    for (;;) {
      const room = MAX_SLOW_READS - this.slowReads.size;
      const cursors = state.backlog.wantedPages(state.isLoaded ? MAX_CURSORS : room);
      if (cursors.length === 0) return;
      if (state.isLoaded) await this.readPages(cursors);
      else await this.readSlowly(cursors);
    }
  }

  /**
   * While the shelves of a new term are being found, each page is read by itself: one that lies behind millions of dead
   * rows keeps no other shelf waiting.
   */
  private async readSlowly(cursors: readonly Cursor[]): Promise<void> {
    for (const cursor of cursors) {
      const read: Promise<void> = this.readPages([cursor])
        .catch((error: unknown) => {
          if (this.state.term.over) return;
          this.state.log.warn({ error: messageOf(error) }, 'a page of the backlog could not be read');
        })
        .finally(() => {
          this.slowReads.delete(read);
          this.pages.wake();
        });
      this.slowReads.add(read);
    }
    await Promise.race(this.slowReads);
  }

  private async readPages(cursors: readonly Cursor[]): Promise<void> {
    const { state } = this;
    const limit = Math.max(SMALL_PAGE_JOBS, Math.floor(PAGE_JOBS / cursors.length));
    let rows: Waiting[];
    try {
      rows = await readPages(state.reads, cursors, limit);
      await state.directory.learn(rows);
    } catch (error) {
      for (const cursor of cursors) state.backlog.abandonRead(cursor);
      throw error;
    }
    const pages = new Map<string, Waiting[]>();
    for (const row of rows) {
      const key = shelfKey(row);
      const page = pages.get(key);
      if (page) page.push(row);
      else pages.set(key, [row]);
    }
    for (const cursor of cursors) {
      const page = pages.get(shelfKey(cursor)) ?? [];
      const last = page.at(-1);
      // The cursor moves first: what the page brings must not be taken for still unread.
      state.backlog.endRead(cursor, page.length === limit && last ? last : null);
      for (const row of page) if (state.hasPlace(row)) state.backlog.add(row);
    }
  }

  /** Finds jobs whose hint never came; answers with the pause until the next look. */
  async lookBack(): Promise<number> {
    const { state } = this;
    const startedAt = performance.now();
    const now = state.clock.now();
    // From one look to the next nothing may slip through, however long the pause between them was.
    const from = firstUuidAt(Math.min(now, this.lookedAt) - this.submitTimeoutMs - CLOCK_ERROR_MS);
    let after = SHELF_START.id as string;
    for (;;) {
      const found = await lookBack(state.reads, from, after, LOOK_BACK_JOBS, now);
      if (found.admit) this.parts.onAdmit();
      const unknown = found.ids.filter((id) => !state.backlog.find(id) && !state.isTaken(id));
      if (unknown.length > 0) await this.hint(await readWaiting(state.hot, unknown));
      if (found.ids.length < LOOK_BACK_JOBS) break;
      after = found.ids.at(-1)!;
    }
    this.lookedAt = now;
    const pause = (performance.now() - startedAt) / LOOK_BACK_SHARE;
    return Math.min(Math.max(LOOK_BACK_EVERY_MS, pause), LOOK_BACK_AT_LEAST_EVERY_MS);
  }
}

function shelfKey({ queue, needs, lane, rank }: ShelfRank): string {
  return `${queue}/${needs}/${lane}/${rank}`;
}
