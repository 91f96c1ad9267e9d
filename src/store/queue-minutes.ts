import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** What queues did, by the minute. */

/** Rows that one statement deletes: a leader's statements must be short, whatever the backlog. */
const FORGOTTEN_AT_ONCE = 5_000;

const ADD_MINUTE = leaderStatement(
  'add-queue-minute',
  `forgotten AS (
    DELETE FROM punctual.queue_minutes m WHERE m.ctid = ANY (ARRAY(
      SELECT o.ctid FROM punctual.queue_minutes o WHERE o.minute < $5::bigint AND ${WHILE_TERM_LASTS}
      LIMIT ${FORGOTTEN_AT_ONCE}))
  ), answer AS (
    INSERT INTO punctual.queue_minutes AS m (queue, minute, ended, ready, oldest_ready_ms)
    SELECT u.queue, $4::bigint, u.ended, u.ready, u.oldest
    FROM unnest($6::int[], $7::bigint[], $8::bigint[], $9::bigint[]) u(queue, ended, ready, oldest)
    WHERE ${WHILE_TERM_LASTS}
    ON CONFLICT (queue, minute) DO UPDATE SET ended = m.ended + excluded.ended, ready = excluded.ready,
      oldest_ready_ms = excluded.oldest_ready_ms
    RETURNING m.queue
  )`,
);

const READ_MINUTES = statement(
  'read-queue-minutes',
  `
    SELECT m.minute, m.ended, m.ready, m.oldest_ready_ms AS "oldestReadyMs" FROM punctual.queue_minutes m
    WHERE m.queue = $1::int AND m.minute >= $2::bigint AND m.minute < $3::bigint ORDER BY m.minute`,
);

/** What a queue did in a minute. */
export interface QueueMinute {
  readonly queue: number;
  ended: number;
  ready: number;
  oldestReadyMs: number;
}

/** Stores what queues did in a minute, and forgets minutes before another one. */
export async function addQueueMinute(
  db: Queryable,
  term: TermKey,
  minute: number,
  forgetBefore: number,
  queues: readonly QueueMinute[],
): Promise<void> {
  await runAsLeader(db, term, ADD_MINUTE, [
    ...[minute, forgetBefore, queues.map(({ queue }) => queue), queues.map(({ ended }) => ended)],
    ...[queues.map(({ ready }) => ready), queues.map(({ oldestReadyMs }) => oldestReadyMs)],
  ]);
}

/** The minutes of a queue in which something was to do, oldest first. */
export function readQueueMinutes(
  db: Queryable,
  queue: number,
  from: number,
  to: number,
): Promise<(Omit<QueueMinute, 'queue'> & { readonly minute: number } & Record<string, unknown>)[]> {
  return run(db, READ_MINUTES, [queue, from, to]);
}
