import type { Dst } from './timetable.js';
import { BLOCK, type OffsetChange, type Zone } from './timezone.js';

/**
 * A stretch [from, until) of moments, in seconds, in which wall-clock times are turned into moments in one way.
 * Stretches that are left out belong to no piece.
 */
export interface ZonePiece {
  readonly from: number;
  readonly until: number;
  /** Seconds from the moment to its wall-clock time. */
  readonly offset: number;
  /** The offset before a gap, when times inside the gap are moved to these moments; else null. */
  readonly shifted: number | null;
}

/**
 * The pieces of one block, in their order and without overlaps. A zone keeps an offset for days and changes it by
 * a day at most, so each change can be looked at by itself:
 *
 * - gap (clocks go forward): a missing wall-clock time read with the offset from before the gap is a moment in the
 *   first stretch after the change, as long as the gap. There, two wall-clock times may name the same moment.
 * - overlap (clocks go back): the repeated times are named once by leaving the second stretch out (`first`) or
 *   the first one (`last`).
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
