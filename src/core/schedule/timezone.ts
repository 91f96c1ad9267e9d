import { firstReached } from '../binary-search.js';
import { ScheduleError } from './schedule-error.js';
import type { Dst } from './timetable.js';

/** A change of a zone's offset at a moment (in seconds since 1970); offsets are the seconds to add to UTC. */
export interface OffsetChange {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

const DAY = 86_400;

/** The changes of a zone are found and cached in blocks of this many seconds. */
export const BLOCK = 400 * DAY;

/** An offset changes by at most a day, so changes this far outside of a block matter to it as well. */
const AROUND = 2 * DAY;

/** No zone keeps an offset for a shorter time; four days (Freetown, 1939) and a week (Gaza, 2040) are the shortest. */
const SHORTEST_STAY = 3 * DAY;

/** 1800: before it every zone has its local mean time. */
const FIRST_KNOWN = -5_364_662_400;

/** A bound of the cache, in case somebody asks for many zones and centuries. */
const MOST_BLOCKS = 50_000;

/** Names that Intl knows from older systems; several, such as BST, mean something else to most people. */
const NOT_IANA = /^(?!(?:cet|eet|est|gmt|hst|met|mst|prc|roc|rok|uct|utc|wet)$)[a-z]{3}$|^systemv\//;

const zones = new Map<string, Zone>();
let blocksHeld = 0;

/** Whether a name is a time zone of the IANA database that this Node knows; offsets such as `+02:00` are not. */
export function isTimezone(name: string): boolean {
  return findZone(name) !== undefined;
}

/** The zone of a name; throws a ScheduleError when there is none. */
export function zoneOf(name: string): Zone {
  const zone = findZone(name);
  if (zone) return zone;
  throw new ScheduleError('/timezone', `"${name}" is not an IANA time zone such as Europe/Berlin or UTC`);
}

function findZone(name: string): Zone | undefined {
  // Intl ignores case, and the cache must not hold one zone under many spellings.
  const spelling = name.toLowerCase();
  const known = zones.get(spelling);
  if (known) return known;
  if (!/^[a-z][a-z0-9_+/-]*$/.test(spelling) || NOT_IANA.test(spelling)) return undefined;
  try {
    const zone = new Zone(formatOf(name));
    zones.set(spelling, zone);
    return zone;
  } catch {
    return undefined;
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}

/** The offsets of a time zone. A call of Intl takes microseconds, so the changes of a block are cached. */
export class Zone {
  private readonly blocks = new Map<number, readonly OffsetChange[]>();

  constructor(private readonly format: Intl.DateTimeFormat) {}

  /** Seconds to add to UTC at a moment given in seconds. */
  offsetAt(moment: number): number {
    const known = Math.max(moment, FIRST_KNOWN);
    const parts = /(\d+)\D+(\d+)\D+(\d+)\D+(\d+)\D+(\d+)\D+(\d+)/.exec(this.format.format(known * 1_000))!;
    const [month, day, year, hour, minute, second] = parts.slice(1).map(Number);
    return Date.UTC(year!, month! - 1, day, hour, minute, second) / 1_000 - known;
  }

  /** The changes of offset inside a block, shortly before and shortly after it, in order. */
  changesAround(block: number): readonly OffsetChange[] {
    let changes = this.blocks.get(block);
    if (!changes) {
      if (blocksHeld >= MOST_BLOCKS) forgetBlocks();
      changes = this.findChanges(block * BLOCK - AROUND, (block + 1) * BLOCK + AROUND);
      this.blocks.set(block, changes);
      blocksHeld++;
    }
    return changes;
  }

  forget(): void {
    this.blocks.clear();
  }

  private findChanges(from: number, until: number): OffsetChange[] {
    const changes: OffsetChange[] = [];
    let before = this.offsetAt(from);
    for (let moment = from; moment < until; ) {
      const next = Math.min(moment + SHORTEST_STAY, until);
      const after = this.offsetAt(next);
      if (after !== before) {
        const at = firstReached(moment + 1, next, (between) => this.offsetAt(between) !== before);
        changes.push({ at, before, after });
      }
      moment = next;
      before = after;
    }
    return changes;
  }
}

function forgetBlocks(): void {
  for (const zone of zones.values()) zone.forget();
  blocksHeld = 0;
}

/**
 * A range [from, until) of moments, in seconds, in which wall-clock times are converted to moments in one way. Ranges
 * in which no wall-clock time is due belong to no piece.
 */
export interface ZonePiece {
  readonly from: number;
  readonly until: number;
  /** Seconds from the moment to its wall-clock time. */
  readonly offset: number;
  /** The offset before a gap, if times inside the gap are shifted to these moments; else null. */
  readonly shifted: number | null;
}

/**
 * The pieces of one block, in order and disjoint. A zone keeps an offset for days and changes it by at most a day, so
 * each change is treated on its own:
 *
 * - gap (clocks go forward): a missing wall-clock time, converted with the offset from before the gap, is a moment in
 *   the range after the change that is as long as the gap. There, two wall-clock times may name the same moment.
 * - overlap (clocks go back): the repeated times are due once, because their second range (`first`) or their first one
 *   (`last`) is left out.
 */
export function piecesOf(zone: Zone, block: number, dst: Dst | null): ZonePiece[] {
  const changes = zone.changesAround(block);
  const start = block * BLOCK;
  const end = start + BLOCK;
  const pieces: ZonePiece[] = [];
  const add = (from: number, until: number, offset: number, shifted: number | null) => {
    if (from < end && until > start && from < until) {
      pieces.push({ from: Math.max(from, start), until: Math.min(until, end), offset, shifted });
    }
  };
  let from = Number.NEGATIVE_INFINITY;
  for (const change of changes) {
    add(from, change.at - leftOutBefore(change, dst), change.before, null);
    from = change.at + leftOutAfter(change, dst);
    if (dst?.gap === 'shift' && change.after > change.before) {
      from = change.at + change.after - change.before;
      add(change.at, from, change.after, change.before);
    }
  }
  add(from, Number.POSITIVE_INFINITY, changes.at(-1)?.after ?? zone.offsetAt(start), null);
  return pieces;
}

function leftOutBefore(change: OffsetChange, dst: Dst | null): number {
  return dst?.overlap === 'last' ? Math.max(0, change.before - change.after) : 0;
}

function leftOutAfter(change: OffsetChange, dst: Dst | null): number {
  return dst?.overlap === 'first' ? Math.max(0, change.before - change.after) : 0;
}
