import Type from 'typebox';
import type { Hint } from '../cluster/hint-sender.js';
import { EVENTS_HEARTBEAT_MS } from '../cluster/leader-events.js';
import type { Figures } from '../core/figures.js';
import { strict } from '../core/schemas/object.js';
import { noLeader } from '../dispatch/leader-state.js';
import type { NodeContext } from './context.js';
import { type Call, json, jsonCheckedByRun, type Route, route } from './route.js';

const MAX_HINT_BYTES = 16 * 1024 * 1024;

/** Where a node asks a shard's leader for its figures. */
export const FIGURES_PATH = '/internal/figures';

/** Where a node tells a shard's leader what it was asked to submit. */
export const SUBMISSIONS_PATH = '/internal/submissions';

/** What a node was asked to submit in the last second, by tenant, for tenants with a quota of submissions. */
const Submissions = Type.Object({
  node: Type.String(),
  asked: Type.Record(Type.String(), Type.Number()),
});

/** The line between two nodes that a request is about; the node that opens it makes up its name. */
const LinePath = strict({ line: Type.String() });

/** Jobs that another node wants to hear of, and no more. */
const EndsChange = Type.Object({
  /** Counts the changes; said on the line once this one is taken note of. */
  change: Type.Integer(),
  add: Type.Array(Type.String()),
  remove: Type.Array(Type.String()),
});

/** Tenants of which another node wants to hear events, and no more. */
const EventsChange = Type.Object({ add: Type.Array(Type.String()), remove: Type.Array(Type.String()) });

/** What nodes say to each other. Not part of the public interface. */
export const peerRoutes: readonly Route[] = [
  route({
    id: 'openEnds',
    method: 'GET',
    path: '/internal/ends/:line',
    tag: 'internal',
    summary: 'Tells another node which jobs end, for as long as it listens and this node leads.',
    scope: 'node',
    params: LinePath,
    answers: {
      200: { kind: 'stream', type: 'application/x-ndjson', description: 'Ids of jobs, by the line.' },
    },
    run: ({ node, params: { line }, call }) => {
      const { endLines } = node.shard(call.shard);
      return call.stream('nodes', async (stream) => {
        const over = endLines.open(line, (said) => void stream.write(`${JSON.stringify(said)}\n`));
        try {
          stream.open();
          await firstOf(over, stream.gone);
        } finally {
          endLines.close(line);
        }
      });
    },
  }),
  route({
    id: 'changeEnds',
    method: 'POST',
    path: '/internal/ends/:line',
    tag: 'internal',
    summary: 'Changes of which jobs a line tells.',
    scope: 'node',
    params: LinePath,
    body: json(EndsChange),
    answers: { 204: 'The change is made.' },
    run: ({ node, params: { line }, body, call }) => node.shard(call.shard).endLines.change(line, body),
  }),
  route({
    id: 'openEvents',
    method: 'GET',
    path: '/internal/events/:line',
    tag: 'internal',
    summary: 'Tells another node what happens, for as long as it listens and this node leads.',
    scope: 'node',
    params: LinePath,
    answers: {
      200: { kind: 'stream', type: 'text/plain; charset=utf-8', description: 'Events, by the line.' },
    },
    run: ({ node, params: { line }, call }) => {
      const { eventLines } = node.shard(call.shard);
      return call.stream('nodes', async (stream) => {
        const over = eventLines.open(line, (text) => stream.write(text));
        let heart: NodeJS.Timeout | undefined;
        const beat = () => {
          void stream.write('H\n');
          heart = setTimeout(beat, EVENTS_HEARTBEAT_MS).unref();
        };
        try {
          beat();
          await firstOf(over, stream.gone);
        } finally {
          clearTimeout(heart);
          eventLines.close(line);
        }
      });
    },
  }),
  route({
    id: 'changeEvents',
    method: 'POST',
    path: '/internal/events/:line',
    tag: 'internal',
    summary: 'Changes of which tenants a line tells the events.',
    scope: 'node',
    params: LinePath,
    body: json(EventsChange),
    answers: { 204: 'The change is made.' },
    run: ({ node, params: { line }, body, call }) =>
      node.shard(call.shard).eventLines.change(line, body.add, body.remove),
  }),
  route({
    id: 'hintJobs',
    method: 'POST',
    path: '/internal/hints',
    tag: 'internal',
    summary: 'Takes note of jobs that another node has stored.',
    scope: 'node',
    // The body comes from a node that has proved to be one; a hint that is wrong is refused by the claim, as long as it
    // tells nothing that the claim would otherwise read.
    body: jsonCheckedByRun(Type.Object({}), { maxBytes: MAX_HINT_BYTES, lists: ['jobs'] }),
    answers: { 204: 'Taken note of.' },
    run: ({ node, body, call }) => takeHint(node, call.shard, body as Hint),
  }),
  route({
    id: 'getFigures',
    method: 'GET',
    path: FIGURES_PATH,
    tag: 'internal',
    summary: 'What only the leader knows, for the metrics of the other nodes.',
    scope: 'node',
    answers: { 200: Type.Unsafe<Figures>(Type.Object({})) },
    run: async ({ node, call }) => {
      // The node that asks knows another leader by then, or does without.
      const leader = node.shard(call.shard).currentLeader();
      if (!leader) throw noLeader();
      return leader.figures();
    },
  }),
  route({
    id: 'tellSubmissions',
    method: 'POST',
    path: SUBMISSIONS_PATH,
    tag: 'internal',
    summary: 'Adds up what the nodes were asked to submit, and answers with the totals.',
    scope: 'node',
    body: json(Submissions),
    answers: { 200: Type.Record(Type.String(), Type.Number()) },
    run: ({ node, body, call }) => {
      const shard = node.shard(call.shard);
      if (!shard.currentLeader()) throw noLeader();
      return shard.submissionTotals.hear(body.node, body.asked, performance.now());
    },
  }),
  telling(
    'leaseChanged',
    '/internal/lease-changed',
    'Looks at the lease at once, because another node gave it up.',
    (node, { shard }) => node.shard(shard).lookAtLease(),
  ),
  telling(
    'keysChanged',
    '/internal/keys-changed',
    'Looks at once whether the keys of those who wait are still valid, because some were changed.',
    (node) => {
      node.authentication.lookAgain();
      // Whoever changed them has left an entry of the audit.
      node.shards[0].currentLeader()?.noteEntry();
    },
  ),
  telling(
    'nodeJoined',
    '/internal/node-joined',
    'Looks at the list of nodes at once, because one has joined.',
    (node) => node.lookAtNodes(),
  ),
];

function telling(
  id: string,
  path: `/${string}`,
  summary: string,
  look: (node: NodeContext, call: Call) => void,
): Route {
  return route({
    ...{ id, method: 'POST', path, tag: 'internal', summary, scope: 'node' },
    answers: { 204: 'Looked.' },
    run: ({ node, call }) => look(node, call),
  });
}

/** Hands jobs that another node has stored to the shard's dispatcher, if this node leads; else the hint is dropped. */
export async function takeHint(
  node: NodeContext,
  shard: number,
  { jobs, startBefore, workflows, artifacts, arrived }: Hint,
): Promise<void> {
  // A node of an older version leaves things out; the look-back reads what it could not tell.
  const complete = jobs.filter(
    (job) => typeof job.sizeKib === 'number' && typeof job.lane === 'number' && job.key !== undefined,
  );
  const places = complete.map(({ task: _, workflow: __, ...job }) => ({ ...job, row: null }));
  const leader = node.shards.find(({ id }) => id === shard)?.currentLeader();
  const told = leader?.events.isHeard ? new Map(complete.map((job) => [job.id, job])) : undefined;
  await leader?.hint(places, startBefore, { told, workflows, artifacts, arrived });
}

/** Resolves when one of the signals aborts. */
function firstOf(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    }
  });
}
