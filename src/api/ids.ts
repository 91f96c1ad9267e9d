import { invalid } from '../core/errors.js';
import { IdQuery, MatchingIds } from '../core/schemas/ids.js';
import { findIds } from '../store/find-ids.js';
import { readJob } from '../store/read-job.js';
import { limitsOf, mayTouchJob } from './restrictions.js';
import { type Route, route } from './route.js';

/** How many ids are told: enough to choose from. */
const TOLD = 5;
const ID_DIGITS = 32;

/** Completing ids, so that people need not type or paste all of one. */
export const idRoutes: readonly Route[] = [
  route({
    id: 'findIds',
    method: 'GET',
    path: '/v1/ids',
    tag: 'jobs',
    summary: 'Find the jobs or workers whose id begins like this; at most five.',
    scope: 'read',
    query: IdQuery,
    answers: { 200: MatchingIds },
    run: async ({ node, caller, query: { kind, prefix } }) => {
      const digits = prefix.replaceAll('-', '');
      if (digits.length > ID_DIGITS) {
        throw invalid([{ pointer: '/prefix', detail: `must have at most ${ID_DIGITS} digits` }]);
      }
      const { tenant, operator, allTenants } = caller;
      const { pool, hot } = node.shardOf(tenant);
      const ofAll = kind === 'worker' && allTenants;
      const search = { tenant: ofAll ? null : tenant, digits, limit: TOLD, operator };
      const { ids, more } = await findIds(pool, kind, search);
      if (kind !== 'job' || !limitsOf(caller)) return { ids, more };
      // They are few, and only a key that is restricted pays for the look at each.
      const jobs = await Promise.all(ids.map((id) => readJob(hot, tenant, id)));
      const isReached = await Promise.all(jobs.map((job) => job !== null && mayTouchJob(hot, caller, job)));
      return { ids: ids.filter((_, i) => isReached[i]), more };
    },
  }),
];
