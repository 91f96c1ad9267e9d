import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { firstUuidAt } from '../core/uuid.js';
import {
  BEFORE_ALL_SEGMENTS,
  type Cursor,
  findSegments,
  lookBack,
  readPages,
  readWaiting,
  SEGMENT_START,
  type SegmentRank,
  type Waiting,
} from '../store/read-backlog.js';
import type { LeaderState } from './leader-state.js';
import { isBefore } from './segment.js';

/** Jobs of one statement, shared by the segments it reads, and the fewest that a segment gets. */
const PAGE_JOBS = 5_000;
const SMALL_PAGE_JOBS = 100;
const MAX_CURSORS = 200;
/** Pages that are read in parallel, each in its own statement; claims need connections too. */
const MAX_SLOW_READS = 2;
/** Segments found by one statement. */
const MAX_SEGMENTS = 10_000;
/** Jobs that one statement of the look-back returns. */
const LOOK_BACK_JOBS = 10_000;
const LOOK_BACK_EVERY_MS = 1_000;
const LOOK_BACK_AT_LEAST_EVERY_MS = 3_000;
/** A look-back may run for at most this share of the time, so that it never becomes a load of its own. */
const LOOK_BACK_SHARE = 0.05;
/** How long the start of a term waits for the first segments; after that new jobs start ahead of old ones. */
const FIND_WITHIN_MS = 250;
/** How often every segment is read anew from its start, which finds any job that memory has missed. */
const RELOAD_EVERY_MS = 600_000;
/** How wrong the clock of a submitting node may be. */
const CLOCK_ERROR_MS = 2_000;

/**
 * Fills the backlog from the table: pages for segments that run low, and a look-back for jobs whose hint was
 * lost. A submission becomes visible at most its statement timeout after its id was made, so a look-back that
 * starts that long before the previous one finds every job.
 */
export class BacklogReader {
  private readonly pages: Loop;
  private readonly watch: Loop;
  private readonly reload: Loop;
  /** When the last look-back that succeeded began; the next one may be much later if it fails or takes long. */
  private lookedAt = 0;
  /** The last segment that was found, after which the search continues; null when all have been found. */
  private unfound: SegmentRank | null = BEFORE_ALL_SEGMENTS;
  /** How many segments one statement looks for; fewer after a timeout, so that each statement finds some. */
  private findAtOnce = MAX_SEGMENTS;
  /** Pages that are being read, each in its own statement. */
  private readonly slowReads = new Set<Promise<boolean>>();
  /** Settles when the first segments of the term have been found. */
  private firstFind: Promise<void> = Promise.resolve();

  constructor(
    private readonly state: LeaderState,
    private readonly submitTimeoutMs: number,
    private readonly parts: {
      onAdmit(): void;
      onCancel(): void;
      onWake(): void;
      /** Jobs wait for artifacts. */
      onArtifacts(): void;
      onStartBefore(at: number | null): void;
    },
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
   * Finds the first segments of a term, which are enough to begin with. If they lie behind so many dead rows that this
   * takes long, the term begins without them: with new jobs, and with those after the running ones, which is where the
   * last leader was.
   */
  async load(): Promise<void> {
    // The search may miss jobs that are stored from here on; the look-back must find them.
    this.lookedAt = this.state.clock.now();
    this.firstFind = this.findSome();
    const found = this.firstFind.then(() => true);
    const isFound = await Promise.race([found, pause(FIND_WITHIN_MS, false, { ref: false })]);
    if (!isFound) this.continueAfterRunning();
  }

  private continueAfterRunning(): void {
    const { running, directory, backlog } = this.state;
    const last = new Map<string, Cursor>();
    for (const { cursor } of running.values()) {
      const key = segmentKey(cursor);
      const before = last.get(key);
      if (directory.knows(cursor) && (!before || isBefore(before, cursor))) last.set(key, cursor);
    }
    backlog.rewindAll([...last.values()]);
  }

  /** Finds the remaining segments; the next pass starts from the first again, later if this one took long. */
  private async findAll(): Promise<number> {
    await this.firstFind.catch(() => undefined);
    const startedAt = performance.now();
    while (this.unfound && !this.state.term.over) await this.findSome();
    this.unfound = BEFORE_ALL_SEGMENTS;
    return Math.max(RELOAD_EVERY_MS, (performance.now() - startedAt) / LOOK_BACK_SHARE);
  }

  private async findSome(): Promise<void> {
    const { directory, backlog, reads } = this.state;
    const limit = this.findAtOnce;
    const segments = await findSegments(reads, this.unfound ?? BEFORE_ALL_SEGMENTS, limit).catch((error) => {
      this.findAtOnce = Math.max(1, Math.floor(limit / 10));
      throw error;
    });
    this.findAtOnce = Math.min(MAX_SEGMENTS, limit * 2);
    await directory.learn(segments);
    backlog.rewindAll(segments.filter((segment) => directory.knows(segment)));
    this.unfound = segments.length < limit ? null : segments.at(-1)!;
    if (this.unfound === null) this.state.isLoaded = true;
    this.pages.wake();
  }

  start(): void {
    this.pages.start();
  }

  /** Starts the look-back and the reload. */
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

  /** Adds new jobs, as told by whoever stored them. */
  async hint(jobs: readonly Waiting[]): Promise<void> {
    for (const job of jobs) this.parts.onStartBefore(job.startBefore);
    await this.state.takeIn(jobs, false);
  }

  /** Reads pages until no segment wants one. */
  async readWanted(): Promise<void> {
    const { state } = this;
    for (;;) {
      const room = MAX_SLOW_READS - this.slowReads.size;
      const cursors = state.backlog.wantedPages(state.isLoaded ? MAX_CURSORS : room);
      if (cursors.length === 0) return;
      if (state.isLoaded) await this.readPages(cursors);
      else if (!(await this.readSlowly(cursors))) return;
    }
  }

  /**
   * Reads each page in its own statement while the segments of a new term are being found: a page that lies behind
   * millions of dead rows does not delay other segments. Resolves with the first one; false when it failed, so that the
   * next try waits for the next pass.
   */
  private async readSlowly(cursors: readonly Cursor[]): Promise<boolean> {
    for (const cursor of cursors) {
      const read: Promise<boolean> = this.readPages([cursor])
        .then(
          () => {
            this.pages.wake();
            return true;
          },
          (error: unknown) => {
            if (!this.state.term.over)
              this.state.log.warn({ error: messageOf(error) }, 'a page of the backlog could not be read');
            return false;
          },
        )
        .finally(() => this.slowReads.delete(read));
      this.slowReads.add(read);
    }
    return Promise.race(this.slowReads);
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
      const key = segmentKey(row);
      const page = pages.get(key);
      if (page) page.push(row);
      else pages.set(key, [row]);
    }
    for (const cursor of cursors) {
      const page = pages.get(segmentKey(cursor)) ?? [];
      const last = page.at(-1);
      // The cursor moves first; otherwise the segment would leave the jobs of the page in the table as unread.
      state.backlog.endRead(cursor, page.length === limit && last ? last : null);
      for (const row of page) if (state.hasKnownNames(row)) state.backlog.add(row);
    }
  }

  /** Finds jobs whose hint was lost; answers with the pause until the next look-back. */
  async lookBack(): Promise<number> {
    const { state } = this;
    const startedAt = performance.now();
    const now = state.clock.now();
    // The ranges of two look-backs must overlap, however long the pause between them was.
    const from = firstUuidAt(Math.min(now, this.lookedAt) - this.submitTimeoutMs - CLOCK_ERROR_MS);
    let after = SEGMENT_START.id as string;
    for (;;) {
      const found = await lookBack(state.reads, from, after, LOOK_BACK_JOBS, now);
      if (found.admit) this.parts.onAdmit();
      if (found.cancel) this.parts.onCancel();
      if (found.wake) this.parts.onWake();
      if (found.artifacts) this.parts.onArtifacts();
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

function segmentKey({ queue, needs, lane, rank }: SegmentRank): string {
  return `${queue}/${needs}/${lane}/${rank}`;
}
