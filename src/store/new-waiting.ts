import type { JobRow } from './job-row.js';
import type { Waiting } from './read-backlog.js';

/** A new job as the dispatcher knows it, without reading it back. */
export function toWaiting(row: JobRow): Waiting & { where: 'out' } {
  return {
    id: row.id,
    tenant: row.tenant,
    queue: row.queue,
    needs: row.needs,
    lane: row.lane,
    key: row.concurrency_key,
    rank: row.rank,
    runAt: row.run_at,
    fence: 1,
    startBefore: row.start_before,
    // The backlog's own mark; there from the beginning, so that it need not grow the object.
    where: 'out',
  };
}
