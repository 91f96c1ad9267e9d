/**
 * Walks through real time in small steps, looks at the wall clock at each, and so learns which wall-clock times exist
 * once, twice or not at all. Nothing is worked out from offsets or rules of zones.
 */

import { wallClock } from './wall-clock.js';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** No change of a zone's offset is longer than a day, so this much on both sides shows both passes of an overlap. */
const WIDEST_CHANGE = 26 * HOUR;

/** A wall-clock time, and the moments at which the clocks show it. */
export interface NamedTime {
  readonly wall: number;
  /** None in a gap, two in an overlap, in order. */
  readonly moments: readonly number[];
  /** In a gap, the moment at which the clocks would have shown the time, had they not been put forward. */
  readonly shifted?: number;
  readonly fields: WallFields;
}

export interface WallFields {
  readonly second: number;
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  readonly year: number;
}

/** What was seen between two moments, `from` included, `to` not. */
export interface Walked {
  readonly timezone: string;
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  readonly times: readonly NamedTime[];
}

export interface WalkOptions {
  readonly timezone: string;
  readonly from: number;
  readonly to: number;
  /** A minute, or a second for expressions with seconds and for offsets that are not whole minutes. */
  readonly stepMs?: number;
  /** How far to look beyond both ends: at least the length of the longest change inside. */
  readonly marginMs?: number;
}

/** Walks from one moment to another and lists every wall-clock time on the way, in the order of the wall clock. */
export function walk(options: WalkOptions): Walked {
  const { timezone, stepMs = MINUTE, marginMs = WIDEST_CHANGE } = options;
  const from = roundUp(options.from, stepMs);
  const to = roundUp(options.to, stepMs);
  const seen = look(timezone, from - marginMs, to + marginMs, stepMs);
  return { timezone, from, to, stepMs, times: nameTimes(seen, stepMs) };
}

interface Seen {
  readonly moments: readonly number[];
  readonly walls: readonly number[];
}

function look(timezone: string, begin: number, end: number, stepMs: number): Seen {
  const clock = wallClock(timezone);
  const moments: number[] = [];
  const walls: number[] = [];
  for (let moment = begin; moment < end; moment += stepMs) {
    const wall = clock(moment);
    if (wall % stepMs !== 0) throw new Error(`${timezone} needs smaller steps at ${moment}`);
    moments.push(moment);
    walls.push(wall);
  }
  return { moments, walls };
}

function nameTimes({ moments, walls }: Seen, stepMs: number): NamedTime[] {
  const momentsOf = new Map<number, number[]>();
  const shiftedOf = new Map<number, number>();
  let earliest = Number.POSITIVE_INFINITY;
  let latest = Number.NEGATIVE_INFINITY;
  for (const [index, wall] of walls.entries()) {
    const moment = moments[index]!;
    const others = momentsOf.get(wall);
    if (others === undefined) momentsOf.set(wall, [moment]);
    else others.push(moment);
    earliest = Math.min(earliest, wall);
    latest = Math.max(latest, wall);
    // The clocks jumped over these times: they keep the distance they would have had from the step before the jump.
    const before = index === 0 ? wall : walls[index - 1]!;
    for (let missed = before + stepMs; missed < wall; missed += stepMs) {
      if (shiftedOf.has(missed)) throw new Error(`the clocks jump twice over ${missed}`);
      shiftedOf.set(missed, moments[index - 1]! + (missed - before));
    }
  }
  const times: NamedTime[] = [];
  for (let wall = earliest; wall <= latest; wall += stepMs) {
    times.push(nameTime(wall, momentsOf.get(wall) ?? [], shiftedOf.get(wall)));
  }
  return times;
}

function nameTime(wall: number, moments: readonly number[], shifted: number | undefined): NamedTime {
  const fields = fieldsOf(wall);
  if (moments.length === 1 || moments.length === 2) return { wall, moments, fields };
  if (moments.length > 2) throw new Error(`the clocks show ${wall} more than twice`);
  if (shifted === undefined) throw new Error(`the clocks never show ${wall}, nor jump over it`);
  return { wall, moments, shifted, fields };
}

/** The parts of a wall-clock time, as an expression names them: January is 1. */
export function fieldsOf(wall: number): WallFields {
  const date = new Date(wall);
  return {
    second: date.getUTCSeconds(),
    minute: date.getUTCMinutes(),
    hour: date.getUTCHours(),
    day: date.getUTCDate(),
    month: date.getUTCMonth() + 1,
    year: date.getUTCFullYear(),
  };
}

function roundUp(moment: number, stepMs: number): number {
  return Math.ceil(moment / stepMs) * stepMs;
}
