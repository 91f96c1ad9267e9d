/** Finds where the clocks of a zone are put forward or back, by looking at them every hour. */

import { HOUR, MINUTE, SECOND } from './walk.js';
import { wallClock } from './wall-clock.js';

export interface Change {
  /** The first moment with the new offset. */
  readonly at: number;
  /** By how much the clocks are put forward; negative when they are put back. */
  readonly byMs: number;
}

/** All changes of a zone's offset between two moments. */
export function changes(timezone: string, from: number, to: number): Change[] {
  const clock = wallClock(timezone);
  const offset = (moment: number) => clock(moment) - moment;
  const found: Change[] = [];
  let before = offset(from);
  for (let moment = from + HOUR; moment <= to; moment += HOUR) {
    const after = offset(moment);
    if (after === before) continue;
    let at = moment;
    while (offset(at - MINUTE) === after) at -= MINUTE;
    while (offset(at - SECOND) === after) at -= SECOND;
    found.push({ at, byMs: after - before });
    before = after;
  }
  return found;
}
