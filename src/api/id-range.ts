import { parseDuration } from '../core/duration.js';
import { invalid } from '../core/errors.js';
import { parseMoment } from '../core/moment.js';
import { firstUuidAt, isUuid } from '../core/uuid.js';

/** Ids from `from` on and below `after`. */
export interface IdRange {
  readonly from?: string;
  readonly after?: string;
}

/** The ids of the jobs that were created from `since` on and before `until`, below the one where a page ended. */
export function idRange(
  { since, until }: { readonly since?: string | undefined; readonly until?: string | undefined },
  after: string | undefined,
  now: number,
): IdRange {
  mustBeCursor(after);
  const end = until === undefined ? undefined : firstUuidAt(momentOf(until, now));
  const below = end === undefined || (after !== undefined && after < end) ? after : end;
  return {
    ...(since !== undefined && { from: firstUuidAt(momentOf(since, now)) }),
    ...(below !== undefined && { after: below }),
  };
}

/** A moment in milliseconds; a duration is so long ago. */
export function momentOf(text: string, now: number): number {
  return parseMoment(text) ?? now - parseDuration(text)!;
}

/** The error for a cursor that no page has named. */
export function wrongCursor(): Error {
  return invalid([{ pointer: '/after', detail: 'must be the "next" of an earlier page' }]);
}

/** Throws unless the cursor, if there is one, is an id, as it is for lists in the order of ids. */
export function mustBeCursor(after: string | undefined): void {
  if (after !== undefined && !isUuid(after)) throw wrongCursor();
}
