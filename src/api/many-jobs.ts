import { invalid, PunctualError } from '../core/errors.js';
import { conditionsOf } from '../core/payload-filter.js';
import { ManyJobs, ManyJobsAnswer, Redrive, RedriveAnswer } from '../core/schemas/many-jobs.js';
import { LAST_UUID } from '../core/uuid.js';
import type {
  ManyJobsAnswer as Answer,
  JobFilter,
  ManyJobsRequest,
  ManyVerb,
  RefusedJob,
} from '../core/wire.js';
import type { ManyDone, Selection } from '../dispatch/many-control.js';
import { notFound, refusalOf, STATES_FOR } from '../dispatch/steering-rules.js';
import { countJobs, locateJobs } from '../store/find-jobs.js';
import type { Keep } from '../store/idempotency.js';
import type { Caller } from './caller.js';
import { idRange } from './id-range.js';
import { searchOf } from './job-filter.js';
import { forbidden, limitsOf, narrowed } from './restrictions.js';
import { type Call, json, type Route, route } from './route.js';
import type { Shard } from './shard.js';
import { TenantRoom } from './tenant-room.js';

/** A dry run counts up to so many jobs, and for so long; then it answers that there are more. */
const MAX_COUNT = 100_000;
const COUNT_MS = 2_000;
/** Counts that a node runs at the same time, because each keeps a connection to the database busy. */
const counts = new TenantRoom(4);

/** Changes of many jobs at once. */
export const manyJobRoutes: readonly Route[] = [
  many('cancel', 'Cancel many jobs, waiting or running.'),
  many('hold', 'Keep many jobs from starting.'),
  many('release', 'Let many jobs on hold start.'),
  many('delete', 'Delete many jobs that have ended, with their keys and logs.'),
  route({
    id: 'redriveJobs',
    audit: 'jobs.redrive',
    method: 'POST',
    path: '/v1/jobs/redrive',
    tag: 'jobs',
    summary: 'Send many dead letters round again, or count them with `dryRun`.',
    scope: 'submit',
    body: json(Redrive, { optional: 'explained' }),
    answers: { 200: RedriveAnswer },
    idempotent: true,
    run: ({ node, caller, body: { task, queue, ...request }, call }) => {
      const short = { ...(task !== undefined && { task }), ...(queue !== undefined && { queue }) };
      const isShort = Object.keys(short).length > 0;
      const filter = isShort ? { filter: { ...request.filter, ...short } } : {};
      const shard = node.shardOf(caller.tenant);
      const told = (answer: Answer) => ({ ...answer, redriven: answer.changed });
      return changeMany(shard, caller, 'redrive', { ...request, ...filter }, call, told);
    },
  }),
];

function many(verb: Exclude<ManyVerb, 'redrive'>, summary: string): Route {
  return route({
    id: `${verb}Jobs`,
    audit: `jobs.${verb}`,
    method: 'POST',
    path: `/v1/jobs/${verb}`,
    tag: 'jobs',
    summary: `${summary} One call does a bounded part: repeat it with \`after\` until \`next\` is null.`,
    scope: 'submit',
    body: json(ManyJobs, { optional: 'explained' }),
    answers: { 200: ManyJobsAnswer },
    idempotent: true,
    run: ({ node, caller, body, call }) =>
      changeMany(node.shardOf(caller.tenant), caller, verb, body, call, (answer) => answer),
  });
}

/** Changes a bounded part of the jobs, or counts them. What was done so far is kept with everything that is done. */
async function changeMany(
  shard: Shard,
  caller: Caller,
  verb: ManyVerb,
  request: ManyJobsRequest,
  { author, keeper }: Pick<Call, 'author' | 'keeper'>,
  told: (answer: Answer) => Answer,
): Promise<Answer> {
  const { tenant } = caller;
  const { ids, dryRun = false } = request;
  if (ids && limitsOf(caller))
    throw forbidden('The key is restricted: it changes many jobs by a filter, and others one by one.');
  mustChoose(request);
  const range = idRange(request.filter ?? {}, request.after, shard.clock.now());
  const filter = narrowed(caller, request.filter ?? {});
  const selection: Selection | null = ids
    ? { ids }
    : filter && (await selectionOf(shard, tenant, verb, filter, range.from));
  if (selection === null)
    return told({ matched: 0, changed: 0, dryRun, more: false, next: null, refused: [] });
  if (dryRun) return told(await count(shard, tenant, verb, selection, range.after));
  const leader = await shard.leader();
  const toAnswer = (done: ManyDone) => told({ ...done, dryRun, more: done.next !== null });
  const keep: Keep<ManyDone> | undefined = keeper && ((db, done) => keeper.keepPart(db, toAnswer(done)));
  const part = { after: range.after, limit: request.limit };
  return toAnswer(await leader.manyControl.change(tenant, verb, selection, part, { author, keep }));
}

/** Nobody means all jobs by leaving something out; a dry run, which only counts, may. */
function mustChoose({ filter, ids, all = false, dryRun = false }: ManyJobsRequest): void {
  const isFiltered = filter !== undefined && Object.keys(filter).length > 0;
  const choices = [isFiltered, ids !== undefined, all].filter(Boolean).length;
  if (choices === 1 || (choices === 0 && dryRun)) return;
  const detail = 'give "ids", a "filter" with at least one field, or else "all": true';
  throw invalid([{ pointer: '/all', detail }]);
}

/** What to look for; null when nothing can be found. */
async function selectionOf(
  shard: Shard,
  tenant: string,
  verb: ManyVerb,
  filter: JobFilter,
  from: string | undefined,
): Promise<Selection | null> {
  const possible: readonly string[] = STATES_FOR[verb];
  const { state = verb === 'redrive' ? 'failed' : possible.join(',') } = filter;
  if (!state.split(',').every((each) => possible.includes(each))) {
    const detail = `must be ${possible.join(' or ')}: no other job can be changed in this way`;
    throw invalid([{ pointer: '/filter/state', detail }]);
  }
  const conditions = filter.payload && conditionsOf(filter.payload);
  const search = await searchOf(shard.reads, tenant, { ...filter, state }, conditions);
  if (search === null) return null;
  const rule = {
    ...(verb === 'release' && { held: true }),
    ...(verb === 'hold' && { held: false }),
    ...(verb === 'redrive' && { repeatable: true }),
  };
  return { search: { ...search, ...rule, ...(from !== undefined && { from }) } };
}

/** Counts what would be changed; needs no leader. */
async function count(
  shard: Shard,
  tenant: string,
  verb: ManyVerb,
  selection: Selection,
  after: string | undefined,
): Promise<Answer> {
  if ('ids' in selection) return countNamed(shard, tenant, verb, [...new Set(selection.ids)]);
  if (!counts.tryTake(tenant)) {
    const detail = 'Others are being counted; try again when they have ended.';
    throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
  }
  try {
    const until = performance.now() + COUNT_MS;
    const goOn = (count: number) => count < MAX_COUNT && performance.now() < until;
    const { search } = selection;
    const { count, next } = await countJobs(shard.pool, tenant, search, after ?? LAST_UUID, goOn);
    return { matched: count, changed: 0, dryRun: true, more: next !== null, next, refused: [] };
  } finally {
    counts.giveBack(tenant);
  }
}

async function countNamed(
  shard: Shard,
  tenant: string,
  verb: ManyVerb,
  ids: readonly string[],
): Promise<Answer> {
  const located = await locateJobs(shard.hot, tenant, ids);
  const refused: RefusedJob[] = ids.flatMap((id) => {
    const job = located.get(id);
    const refusal = job ? refusalOf(verb, job) : notFound(id);
    return refusal ? [{ id, ...refusal }] : [];
  });
  return { matched: ids.length - refused.length, changed: 0, dryRun: true, more: false, next: null, refused };
}
