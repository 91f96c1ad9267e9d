import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { firstUuidAt } from '../core/uuid.js';
import {
  BEFORE_ALL_SHELVES,
  findShelves,
  lookBack,
  readPages,
  readWaiting,
  SHELF_START,
  type ShelfRank,
  type Waiting,
} from '../store/read-backlog.js';
import type { LeaderState } from './state.js';

/** Jobs read from a shelf at once; with many shelves to read, each gets less. */
const PAGE_JOBS = 5_000;
const SMALL_PAGE_JOBS = 100;
const MAX_CURSORS = 200;
/** Shelves found by one statement. */
const MAX_SHELVES = 10_000;
/** Jobs that one statement of the look-back returns. */
const LOOK_BACK_JOBS = 10_000;
const LOOK_BACK_EVERY_MS = 1_000;
const LOOK_BACK_AT_LEAST_EVERY_MS = 3_000;
/** A look-back may use at most this share of the time, so that it never becomes the load it looks for. */
const LOOK_BACK_SHARE = 0.05;
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
  private unfound: ShelfRank | null = null;

  constructor(
    private readonly state: LeaderState,
    private readonly submitTimeoutMs: number,
    private readonly parts: { onAdmit(): void; onStartBefore(at: number | null): void },
  ) {
    const onError = (loop: string, error: unknown) =>
      state.log.warn({ loop, error: messageOf(error) }, 'the backlog could not be read');
    this.pages = new Loop({ name: 'pages', everyMs: 1_000, pass: () => this.readWanted(), onError });
    this.reload = new Loop({ name: 'reload', everyMs: RELOAD_EVERY_MS, pass: () => this.findAll(), onError });
    this.watch = new Loop({
      name: 'look-back',
      everyMs: LOOK_BACK_EVERY_MS,
      pass: () => this.lookBack(),
      onError,
    });
  }

  /** At the start of a term everything that waits is in the table; the first shelves are enough to begin with. */
  async load(): Promise<void> {
    this.unfound = BEFORE_ALL_SHELVES;
    // What is stored from here on may not be among what is found.
    this.lookedAt = this.state.clock.now();
    await this.findSome();
  }

  /** Goes on where finding shelves stopped; the next pass begins anew. */
  private async findAll(): Promise<void> {
    while (this.unfound && !this.state.term.over) await this.findSome();
    this.unfound = BEFORE_ALL_SHELVES;
  }

  private async findSome(): Promise<void> {
    const { directory, backlog, hot } = this.state;
    const shelves = await findShelves(hot, this.unfound ?? BEFORE_ALL_SHELVES, MAX_SHELVES);
    await directory.learn(shelves);
    backlog.rewindAll(
      shelves.filter((shelf) => directory.knows(shelf)),
      SHELF_START,
    );
    this.unfound = shelves.length < MAX_SHELVES ? null : shelves.at(-1)!;
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
    await Promise.all([this.pages.stop(), this.watch.stop(), this.reload.stop()]);
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
      const cursors = state.backlog.wantedPages(MAX_CURSORS);
      if (cursors.length === 0) return;
      const limit = Math.max(SMALL_PAGE_JOBS, Math.floor(PAGE_JOBS / cursors.length));
      let rows: Waiting[];
      try {
        rows = await readPages(state.hot, cursors, limit);
        await state.directory.learn(rows);
      } catch (error) {
        for (const cursor of cursors) state.backlog.abandonRead(cursor);
        throw error;
      }
      const pages = new Map<string, Waiting[]>();
      for (const row of rows) {
        const key = `${row.queue}/${row.needs}/${row.lane}/${row.rank}`;
        const page = pages.get(key);
        if (page) page.push(row);
        else pages.set(key, [row]);
      }
      for (const cursor of cursors) {
        const page = pages.get(`${cursor.queue}/${cursor.needs}/${cursor.lane}/${cursor.rank}`) ?? [];
        const last = page.at(-1);
        // The cursor moves first: what the page brings must not be taken for still unread.
        state.backlog.endRead(cursor, page.length === limit && last ? last : null);
        for (const row of page) if (state.hasPlace(row)) state.backlog.add(row);
      }
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
      const found = await lookBack(state.hot, from, after, LOOK_BACK_JOBS, now);
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
