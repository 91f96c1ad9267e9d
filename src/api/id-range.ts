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
  if (after !== undefined && !isUuid(after)) {
    throw invalid([{ pointer: '/after', detail: 'must be the "next" of an earlier page' }]);
  }
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
