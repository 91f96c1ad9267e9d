import { createHash } from 'node:crypto';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import { invalid, PunctualError } from '../core/errors.js';
import { TimeSlice } from '../core/time-slice.js';
import type { Queryable } from '../store/database.js';
import {
  AnsweredMeanwhileError,
  findAnswer,
  inFlight,
  type Keep,
  type KeepingTime,
  type KeptAnswer,
  type KeyedRequest,
  keepAnswer,
  renewAnswer,
} from '../store/idempotency.js';
import type { Requested } from '../store/requested.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { JobView } from './job-view.js';
import { JsonText, writeJson } from './json-text.js';
import { limitsOf } from './restrictions.js';
import { Answer, type Call, type Route } from './route.js';
import type { Shard } from './shard.js';

/**
 * The header `Idempotency-Key`: a request that is repeated with the same key takes effect once, and is answered like the
 * first one. A route stores its answer in the transaction of its effect (see `store/idempotency.ts`); this part finds
 * stored answers and keeps equal requests from running at the same time on one node.
 */

/** The header, as Node spells it. */
export const IDEMPOTENCY_KEY = 'idempotency-key';
/** Says that an answer is that of an earlier request. */
const REPLAYED = { 'idempotency-replayed': 'true' };
const KEY = /^[\x20-\x7e]{1,255}$/;
/** The largest answer that is kept with the payload and the result of its job. */
const MAX_WHOLE_BYTES = 64 * 1024;
/** Bytes that are hashed between two looks at the clock, in about a millisecond. */
const HASHED_AT_ONCE = 1024 * 1024;

/** What a request asks for: the same again must come to the same. */
export interface Asked {
  readonly route: Route;
  readonly params: unknown;
  readonly query: unknown;
  /** The body as it arrived. */
  readonly body: Buffer | null;
}

/** The requests with an Idempotency-Key of one node. */
export class Idempotency {
  private readonly running = new Set<string>();

  constructor(private readonly node: NodeContext) {}

  /** Answers from what is kept, or runs the request, which keeps its answer with the keeper. */
  async serve(
    caller: Caller,
    key: string,
    asked: Asked,
    run: (keeper: AnswerKeeper) => Promise<unknown>,
  ): Promise<unknown> {
    const { tenant } = caller;
    if (!KEY.test(key)) {
      throw invalid([
        { pointer: `/${IDEMPOTENCY_KEY}`, detail: 'must be 1 to 255 printable ASCII characters' },
      ]);
    }
    // No tenant has a space in its id.
    const name = `${tenant} ${key}`;
    if (this.running.has(name)) throw inFlight();
    this.running.add(name);
    try {
      const request = { tenant, key, hash: await hashOf(caller, asked) };
      const shard = this.node.shardOf(tenant);
      return (await this.replay(shard, request)) ?? (await this.run(shard, request, asked.route, run));
    } finally {
      this.running.delete(name);
    }
  }

  private async run(
    shard: Shard,
    request: KeyedRequest,
    route: Route,
    run: (keeper: AnswerKeeper) => Promise<unknown>,
  ): Promise<unknown> {
    const keeper = new AnswerKeeper(shard, request, this.node.config.idempotencyRetention, statusOf(route));
    try {
      const answer = await run(keeper);
      if (await keeper.finish(answer)) return answer;
      // It did nothing, perhaps because an equal request that ran at the same time has done it.
      return (await this.replay(shard, request)) ?? answer;
    } catch (error) {
      if (error instanceof LeaderElsewhere) throw error;
      // The same request may have been answered since we looked: by another node, or by this one, which did not learn
      // that its transaction was committed. Then what it did may be the very reason why it cannot be done again.
      const isAnswered = error instanceof AnsweredMeanwhileError;
      const answered = await this.replay(shard, request).catch((failure: unknown) => {
        throw isAnswered ? failure : error;
      });
      if (answered === null) throw isAnswered ? inFlight() : error;
      return answered;
    }
  }

  /** The answer that is kept for this request; throws if its key belongs to another request. */
  private async replay(shard: Shard, { tenant, key, hash }: KeyedRequest): Promise<Answer | null> {
    const oldest = shard.clock.now() - this.node.config.idempotencyRetention;
    const kept = await findAnswer(shard.hot, tenant, key, oldest);
    if (kept === null) return null;
    if (!kept.request.equals(hash)) {
      const detail = 'This Idempotency-Key was used for another request; nothing was done.';
      throw new PunctualError('IDEMPOTENCY_KEY_REUSED', detail);
    }
    return toAnswer(kept);
  }
}

/** Keeps the answer to one request. */
export class AnswerKeeper {
  private kept: 'nothing' | 'a part' | 'all' = 'nothing';

  constructor(
    private readonly shard: Shard,
    private readonly request: KeyedRequest,
    private readonly retentionMs: number,
    /** Of an answer that does not say its own. */
    private readonly status: number,
  ) {}

  /** Stores the answer in the transaction of the effect. If that is rolled back and tried again, so is this. */
  async keep(db: Queryable, answer: unknown): Promise<void> {
    await keepAnswer(db, this.request, toKept(answer, this.status), this.time());
    this.kept = 'all';
  }

  /** Stores an answer that tells what was done so far, in one of several transactions that each do a part. */
  async keepPart(db: Queryable, answer: unknown): Promise<void> {
    const renewed = this.kept === 'a part' && (await renewAnswer(db, this.request, writeJson(answer)));
    if (!renewed) await keepAnswer(db, this.request, toKept(answer, this.status), this.time());
    this.kept = 'a part';
  }

  /**
   * Stores the last word of a request that was done in parts; answers whether anything is kept. Of one that did nothing, such as
   * a dry run, nothing is: it can simply run again, and rows that no effect pays for would have no bound.
   */
  async finish(answer: unknown): Promise<boolean> {
    if (this.kept === 'a part') await this.keepPart(this.shard.hot, answer);
    return this.kept !== 'nothing';
  }

  private time(): KeepingTime {
    const now = this.shard.clock.now();
    return { now, oldest: now - this.retentionMs };
  }
}

/**
 * Does what a call requests and answers with `view` of it. If the answer is to be kept, it is made and stored inside the
 * transaction of the effect, on whose connection `view` reads.
 */
export async function answerOf<T, A>(
  { hot }: Shard,
  { author, keeper }: Partial<Pick<Call, 'author' | 'keeper'>>,
  act: (requested: Requested<T>) => Promise<T>,
  view: (db: Queryable, result: T) => A | Promise<A>,
): Promise<A> {
  if (!keeper) return view(hot, await act({ author }));
  let answer: A | undefined;
  const keep: Keep<T> = async (db, made) => {
    answer = await view(db, made);
    await keeper.keep(db, answer);
  };
  const result = await act({ author, keep });
  return answer ?? view(hot, result);
}

/** The ids of a bulk, which are kept in sixteen bytes each, and the rest of its answer. */
export class BulkText extends JsonText {
  constructor(
    readonly ids: readonly string[],
    /** A JSON object. */
    readonly rest: string,
  ) {
    super();
  }

  get text(): string {
    return `{"ids":${JSON.stringify(this.ids)},${this.rest.slice(1)}`;
  }
}

/** The text of a kept answer. */
class KeptText extends JsonText {
  constructor(readonly text: string) {
    super();
  }
}

function toKept(given: unknown, defaultStatus: number): KeptAnswer {
  const { status, body, headers } = given instanceof Answer ? given : new Answer(defaultStatus, given);
  const common = { status, location: headers.location ?? null };
  if (body === undefined) return { ...common, answer: null, ids: null };
  if (body instanceof BulkText) return { ...common, answer: body.rest, ids: body.ids };
  const text = writeJson(body);
  const isLarge = body instanceof JobView && Buffer.byteLength(text) > MAX_WHOLE_BYTES;
  return { ...common, answer: isLarge ? body.withoutLarge().text : text, ids: null };
}

function toAnswer({ status, location, answer, ids }: KeptAnswer): Answer {
  const headers = { ...REPLAYED, ...(location !== null && { location }) };
  if (answer === null) return new Answer(status, undefined, headers);
  return new Answer(status, ids ? new BulkText(ids, answer) : new KeptText(answer), headers);
}

/** The status of a successful answer that does not say its own. */
function statusOf({ answers }: Route): number {
  const [status = 200] = Object.keys(answers).map(Number);
  return status;
}

async function hashOf(caller: Caller, { route, params, query, body }: Asked): Promise<Buffer> {
  const hash = createHash('sha256');
  // The reach of the caller's key counts, so that no key is told what only a key that reaches further was told.
  const { tenant, operator, allTenants = false } = caller;
  const reach = [tenant, operator, allTenants, limitsOf(caller) ?? null];
  hash.update(JSON.stringify([...reach, route.method, route.path, params, query]));
  if (body === null) return hash.digest();
  const slice = new TimeSlice();
  for (let from = 0; from < body.length; from += HASHED_AT_ONCE) {
    hash.update(body.subarray(from, from + HASHED_AT_ONCE));
    if (slice.isOver) await slice.next();
  }
  return hash.digest();
}
