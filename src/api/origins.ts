import { rateOf } from '../core/rate.js';
import { OriginLimit, OriginPage, OriginQuery, OriginReset, OriginView } from '../core/schemas/origin.js';
import { PageQuery } from '../core/schemas/query.js';
import type * as wire from '../core/wire.js';
import type { OriginControl } from '../dispatch/origin-control.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { writePage } from './page-text.js';
import { forbidden, limitsOf } from './restrictions.js';
import { json, type Route, route } from './route.js';

/** Origins of a list that are looked up at once. */
const PORTION = 200;

/** The origins that http targets call: their circuits, pauses and limits. They are named in queries and bodies, because they hold slashes. */
export const originRoutes: readonly Route[] = [
  route({
    id: 'listOrigins',
    method: 'GET',
    path: '/v1/origins',
    tag: 'origins',
    summary:
      'List the origins that are called or waited for, that the leader remembers something about, or that have limits of their own.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: OriginPage },
    run: async ({ node, caller, query: { limit, after = '' } }) => {
      const { tenant } = caller;
      const origins = await controlOf(node, caller);
      const { reads } = node.shardOf(tenant);
      return writePage<wire.OriginView>(limit, {
        portion: PORTION,
        read: (last, { rows }) =>
          origins.list(tenant, last?.origin ?? after, rows, (read) => reads.read(tenant, read)),
        isShown: () => true,
        write: (view) => JSON.stringify(view),
        cursor: (view) => view.origin,
      });
    },
  }),
  route({
    id: 'limitOrigin',
    audit: 'origin.limit',
    method: 'PUT',
    path: '/v1/origins',
    tag: 'origins',
    summary: 'Set the limits of an origin; what is left out is as usual.',
    scope: 'admin',
    body: json(OriginLimit),
    answers: { 200: OriginView },
    repeatable: true,
    run: async ({ node, caller, body, call }) => {
      const { origin, concurrency, rate } = body;
      const origins = await controlOf(node, caller);
      const limits = { concurrency, rate: rate ? rateOf(rate) : null };
      return origins.limit(caller.tenant, origin, limits, call.author);
    },
  }),
  route({
    id: 'unlimitOrigin',
    audit: 'origin.unlimit',
    method: 'DELETE',
    path: '/v1/origins',
    tag: 'origins',
    summary: 'Take the limits of an origin away, so that it has the usual ones.',
    scope: 'admin',
    query: OriginQuery,
    answers: { 204: 'The origin has the usual limits.' },
    run: async ({ node, caller, query, call }) => {
      const origins = await controlOf(node, caller);
      await origins.unlimit(caller.tenant, query.origin, call.author);
    },
  }),
  route({
    id: 'resetOrigin',
    audit: 'origin.reset',
    method: 'POST',
    path: '/v1/origins/reset',
    tag: 'origins',
    summary: 'Close the circuit of an origin and end its pause, so that calls go out at once.',
    scope: 'admin',
    body: json(OriginReset),
    answers: { 200: OriginView },
    idempotent: 'what is closed stays closed',
    run: async ({ node, caller, body: { origin }, call }) => {
      const origins = await controlOf(node, caller);
      return origins.reset(caller.tenant, origin, call.author);
    },
  }),
];

/** An origin is called from any queue, so a key that is restricted to some has no business with it. */
async function controlOf(node: NodeContext, caller: Caller): Promise<OriginControl> {
  if (limitsOf(caller) !== undefined)
    throw forbidden('The key is restricted: origins belong to all queues and tasks of the tenant.');
  const { origins } = await node.shardOf(caller.tenant).leader();
  return origins;
}
