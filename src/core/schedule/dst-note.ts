import { firstDayOf, monthOf } from './civil.js';
import type { CronExpression } from './cron-expression.js';
import { BLOCK, type Zone } from './timezone.js';

const DAY = 86_400;

/**
 * What is special about an occurrence, given in seconds, because the clocks change around it. `shifting` is the
 * expression when its missing times are moved, else null.
 */
export function noteOf(moment: number, zone: Zone, shifting: CronExpression | null): string | undefined {
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
