import { invalid } from '../core/errors.js';
import { IdQuery, MatchingIds } from '../core/schemas/ids.js';
import { findIds } from '../store/find-ids.js';
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
    run: ({ node, caller: { tenant }, query: { kind, prefix } }) => {
      const digits = prefix.replaceAll('-', '');
      if (digits.length > ID_DIGITS) {
        throw invalid([{ pointer: '/prefix', detail: `must have at most ${ID_DIGITS} digits` }]);
      }
      return findIds(node.shardOf(tenant).pool, kind, { tenant, digits, limit: TOLD });
    },
  }),
];
