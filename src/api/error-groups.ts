import { withinBoth } from '../core/access.js';
import { parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { ErrorQuery, ErrorGroupsView as GroupsSchema } from '../core/schemas/error-groups.js';
import type { ErrorGroupsView } from '../core/wire.js';
import { type ErrorGroup, readErrorGroups } from '../store/error-groups.js';
import { limitsOf } from './restrictions.js';
import { type Route, route } from './route.js';
import { TenantRoom } from './tenant-room.js';

const DEFAULT_SINCE = '24h';
const MINUTE_MS = 60_000;
/** Intervals of the window, for a small chart. */
const INTERVALS = 48;
/** Failed jobs that are grouped at most. */
const MOST_JOBS = 10_000;
/** Answers that a node works on at the same time, because each keeps a connection to the database busy. */
const room = new TenantRoom(4);

/** What goes wrong, and how often. */
export const errorRoutes: readonly Route[] = [
  route({
    id: 'listErrors',
    method: 'GET',
    path: '/v1/errors',
    tag: 'jobs',
    summary: 'Failed jobs, grouped by task and by what their errors have in common; the most frequent first.',
    scope: 'read',
    query: ErrorQuery,
    answers: { 200: GroupsSchema },
    run: async ({ node, caller, query }): Promise<ErrorGroupsView> => {
      const { since = DEFAULT_SINCE, limit, task, queue } = query;
      const shard = node.shardOf(caller.tenant);
      const sinceMs = Math.max(MINUTE_MS, parseDuration(since)!);
      const intervalMs = Math.ceil(sinceMs / INTERVALS / 1_000) * 1_000;
      const to = Math.ceil((shard.clock.now() + 1) / 1_000) * 1_000;
      const window = { from: to - intervalMs * INTERVALS, intervalMs, intervals: INTERVALS };
      const asked = {
        queues: queue === undefined ? null : [queue],
        tasks: task === undefined ? null : [task],
      };
      const limits = withinBoth(asked, limitsOf(caller) ?? null);
      if (!room.tryTake(caller.tenant))
        throw new PunctualError('TOO_BUSY', 'Other errors are being grouped; try again shortly.', {
          retryAfter: 1,
        });
      try {
        const read = <T>(work: Parameters<typeof shard.reads.read<T>>[1]) =>
          shard.reads.read(caller.tenant, work);
        const found = await readErrorGroups(read, caller.tenant, window, limits, MOST_JOBS);
        const data = [...found.groups].sort((a, b) => b.count - a.count || b.last - a.last).slice(0, limit);
        return {
          ...{ data: data.map(viewOf), next: null },
          ...{ from: new Date(window.from).toISOString(), to: new Date(to).toISOString(), intervalMs },
          examined: found.groups.reduce((sum, { count }) => sum + count, 0),
          complete: found.complete,
        };
      } finally {
        room.giveBack(caller.tenant);
      }
    },
  }),
];

function viewOf({ first, last, example, ...group }: ErrorGroup): ErrorGroupsView['data'][number] {
  return {
    ...group,
    firstSeen: new Date(first).toISOString(),
    lastSeen: new Date(last).toISOString(),
    exampleJobId: example,
  };
}
