import { firstDayOf, monthOf } from './cron-days.js';
import type { CronExpression } from './cron-expression.js';
import type { Dst, Timetable } from './timetable.js';
import { BLOCK, piecesOf, type Zone, type ZonePiece } from './timezone.js';

const DAY = 86_400;

/** An upper bound of an offset from UTC (a day) plus the length of a gap (another day). */
const FAR = 2 * DAY;

/**
 * How far a search goes. Dates recur within 40 years, and irregular zones (Morocco during Ramadan) are defined until
 * 2087 and regular after that. So a search fails only for a time that lies in a gap every year while gaps are skipped,
 * such as 02:30 on the last Sunday of March in Berlin.
 */
const SEARCH = 120 * 366 * DAY;

/** When a cron expression is due in a zone. */
export class CronTimetable implements Timetable {
  /** Null where the DST policy does not apply. */
  private readonly dst: Dst | null;
  private block = Number.NaN;
  private pieces: readonly ZonePiece[] = [];

  constructor(
    private readonly expression: CronExpression,
    private readonly zone: Zone,
    dst: Dst,
  ) {
    this.dst = expression.everyHour ? null : dst;
  }

  next(after: number): number | null {
    const first = Math.floor(after / 1_000) + 1;
    for (let from = first; from - first <= SEARCH; ) {
      const block = Math.floor(from / BLOCK);
      for (const piece of this.piecesOf(block)) {
        if (piece.until <= from) continue;
        const found = this.nextIn(piece, Math.max(piece.from, from));
        if (found < piece.until) return found * 1_000;
      }
      const end = (block + 1) * BLOCK;
      from = Math.max(end, this.expression.next(end - FAR) - FAR);
    }
    return null;
  }

  previous(atOrBefore: number): number | null {
    const last = Math.floor(atOrBefore / 1_000);
    for (let until = last; last - until <= SEARCH; ) {
      const block = Math.floor(until / BLOCK);
      const pieces = this.piecesOf(block);
      for (let index = pieces.length - 1; index >= 0; index--) {
        const piece = pieces[index]!;
        if (piece.from > until) continue;
        const found = this.previousIn(piece, Math.min(piece.until - 1, until));
        if (found >= piece.from) return found * 1_000;
      }
      const start = block * BLOCK;
      until = Math.min(start - 1, this.expression.previous(start + FAR) + FAR);
    }
    return null;
  }

  count(after: number, until: number): number {
    const from = Math.floor(after / 1_000) + 1;
    const end = Math.floor(until / 1_000) + 1;
    let count = 0;
    for (let block = Math.floor(from / BLOCK); block * BLOCK < end; block++) {
      for (const piece of this.piecesOf(block)) {
        count += this.countIn(piece, Math.max(piece.from, from), Math.min(piece.until, end));
      }
    }
    return count;
  }

  note(at: number): string | undefined {
    if (this.previous(at) !== at) return undefined;
    return noteOf(at / 1_000, this.zone, this.dst?.gap === 'shift' ? this.expression : null);
  }

  private piecesOf(block: number): readonly ZonePiece[] {
    if (block !== this.block) {
      this.pieces = piecesOf(this.zone, block, this.dst);
      this.block = block;
    }
    return this.pieces;
  }

  private nextIn(piece: ZonePiece, from: number): number {
    const named = this.expression.next(from + piece.offset) - piece.offset;
    if (piece.shifted === null) return named;
    return Math.min(named, this.expression.next(from + piece.shifted) - piece.shifted);
  }

  private previousIn(piece: ZonePiece, until: number): number {
    const named = this.expression.previous(until + piece.offset) - piece.offset;
    if (piece.shifted === null) return named;
    return Math.max(named, this.expression.previous(until + piece.shifted) - piece.shifted);
  }

  private countIn(piece: ZonePiece, from: number, until: number): number {
    if (from >= until) return 0;
    const named = this.expression.count(from + piece.offset, until + piece.offset);
    if (piece.shifted === null) return named;
    const shifted = this.expression.count(from + piece.shifted, until + piece.shifted);
    return named + shifted - this.countTwice(piece.offset, piece.shifted, from, until);
  }

  /** How many moments are named by two wall-clock times. A gap is short, so this iterates over it. */
  private countTwice(offset: number, shifted: number, from: number, until: number): number {
    let count = 0;
    let moment = this.expression.next(from + shifted) - shifted;
    while (moment < until) {
      if (this.expression.matches(moment + offset)) count++;
      moment = this.expression.next(moment + 1 + shifted) - shifted;
    }
    return count;
  }
}

/**
 * What a preview says about an occurrence, given in seconds, that lies near a change of the clocks. `shifting` is the
 * expression if its missing times are shifted, else null.
 */
function noteOf(moment: number, zone: Zone, shifting: CronExpression | null): string | undefined {
  for (const { at, before, after } of zone.changesAround(Math.floor(moment / BLOCK))) {
    const gap = after - before;
    if (gap > 0 && moment >= at && moment < at + gap) {
      const named = moment + before;
      if (!shifting?.matches(named)) return undefined;
      const missing = `${wallClock(named, moment + after)}, which does not exist`;
      return shifting.matches(moment + after) ? `also stands for ${missing}` : `shifted from ${missing}`;
    }
    if (gap < 0 && moment >= at + gap && moment < at) {
      return `first of two ${wallClock(moment + before, moment + before)}`;
    }
    if (gap < 0 && moment >= at && moment < at - gap) {
      return `second of two ${wallClock(moment + after, moment + after)}`;
    }
  }
  return undefined;
}

/** A wall-clock time, with its date if that is not the date on which it runs. */
function wallClock(wall: number, runs: number): string {
  const day = Math.floor(wall / DAY);
  const time = wall - day * DAY;
  const parts = [Math.floor(time / 3_600), Math.floor(time / 60) % 60];
  if (time % 60 !== 0) parts.push(time % 60);
  const clock = parts.map(twoDigits).join(':');
  return day === Math.floor(runs / DAY) ? clock : `${dateOf(day)} ${clock}`;
}

function dateOf(day: number): string {
  const month = monthOf(day);
  const year = String(Math.floor(month / 12)).padStart(4, '0');
  return `${year}-${twoDigits((month % 12) + 1)}-${twoDigits(day - firstDayOf(month) + 1)}`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
