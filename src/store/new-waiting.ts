import { type JobRow, sizeKib } from './job-row.js';
import type { Waiting } from './read-backlog.js';

/** A new job as the dispatcher knows it, without reading it back. */
export function toWaiting(row: JobRow): Waiting & { where: 'out' } {
  const { definition } = row;
  return {
    id: row.id,
    tenant: definition.tenant,
    queue: definition.queue,
    needs: definition.needs,
    lane: definition.lane,
    key: definition.concurrency_key,
    rank: definition.rank,
    runAt: definition.run_at,
    fence: 1,
    startBefore: definition.start_before,
    sizeKib: sizeKib(row),
    row,
    // The backlog's own mark; there from the beginning, so that it need not grow the object.
    where: 'out',
  };
}
