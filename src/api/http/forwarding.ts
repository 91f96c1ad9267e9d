import type { FastifyReply, FastifyRequest } from 'fastify';
import { Agent, type Dispatcher } from 'undici';
import type { PeerTrust } from '../../cluster/peer-trust.js';
import { withAnyOf } from '../../core/any-of.js';
import { PunctualError } from '../../core/errors.js';
import { IDEMPOTENCY_KEY } from '../idempotency.js';
import type { FollowedShard } from '../shard.js';
import { TenantRoom } from '../tenant-room.js';
import { isOfWorker } from './access.js';
import { shuttingDown } from './long-polls.js';

/**
 * Moves requests on to the leader. What only the leader can do throws before it has done anything, so the whole request
 * can be made again elsewhere. A forwarded request is never forwarded again: two nodes that take each other for the
 * leader must not play ping-pong.
 */

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it arrived. */
    rawBody: Buffer | null;
  }
}

export interface ForwardingOptions {
  /** The shards whose leaders requests are forwarded to. */
  readonly shards: readonly FollowedShard[];
  /** The credential that tells the leader who the caller is; null passes the caller's own on. */
  readonly credentialFor: (request: FastifyRequest) => string | null;
  /** Marks a request as passed on by a node, and tells whether a node made such a mark. */
  readonly mark: (request: FastifyRequest) => string;
  readonly isMark: (text: string) => boolean;
  /** Which certificates of leaders are trusted. */
  readonly trust: PeerTrust;
}

/** The mark of a request that a node has passed on. */
export const FORWARDED = 'punctual-forwarded';
/** How long the request has waited at earlier leaders, in milliseconds. */
const WAITED = 'punctual-waited';
/** How long a request waits for a leader, from when it came or its leader was lost. */
const PATIENCE_MS = 5_000;
/** Connections to the leader for calls of one kind that do not wait; more calls at a time take turns. */
const MOST_CONNECTIONS = 256;
/** Calls of people and programs that are forwarded at a time, with those that wait for a connection or a leader. */
const MOST_CALLS = 2_048;
const CONNECT_TIMEOUT_MS = 2_000;
/** How long a node that stops waits for answers to what a leader was asked. */
const CLOSING_PATIENCE_MS = 2_000;
/** How long to wait for news of another leader before the same one is asked again. */
const RETRY_PAUSE_MS = 50;
/** Longer than any wait that a request may ask for. */
const ANSWER_TIMEOUT_MS = 90_000;
/** Headers that belong to one connection, not to the request. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'expect',
  'te',
  'trailer',
]);
/** Failures after which it is certain that the leader has not seen the request. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The leader's answer, read to its end. */
interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly body: Buffer;
}

export class Forwarding {
  private readonly calls: Agent;
  private readonly room = new TenantRoom(MOST_CALLS);
  /**
   * What workers say is short and must not wait behind lists and redrives, so it has connections of its own. It is not
   * counted: a worker sends one heartbeat and one report at a time, and large bodies are counted elsewhere.
   */
  private readonly workerCalls: Agent;
  /** Calls that wait hold their connections, so they have some of their own; the node limits how many wait. */
  private readonly waits: Agent;
  private closing = false;
  private readonly givenUp = new AbortController();
  private giveUp: NodeJS.Timeout | undefined;

  constructor(private readonly options: ForwardingOptions) {
    const { trust } = options;
    this.calls = openAgent(trust, MOST_CONNECTIONS);
    this.workerCalls = openAgent(trust, MOST_CONNECTIONS);
    this.waits = openAgent(trust, null);
  }

  /** From now on nobody waits here for a leader. What a leader was asked already is answered, if that is soon. */
  endWaiting(): void {
    this.closing = true;
    for (const { leaderNews } of this.options.shards) leaderNews.tell();
    this.giveUp = setTimeout(() => this.givenUp.abort(), CLOSING_PATIENCE_MS);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    clearTimeout(this.giveUp);
    await Promise.all([this.calls, this.workerCalls, this.waits].map((agent) => agent.destroy()));
  }

  /** Makes the request at a shard's leader and passes the answer on; the signal aborts when nobody is there to hear it. */
  async forward(
    shardId: number,
    request: FastifyRequest,
    reply: FastifyReply,
    gone: AbortSignal,
    mayWait: boolean,
  ): Promise<void> {
    if (this.options.isMark(String(request.headers[FORWARDED] ?? '')))
      throw noLeader('This node does not lead.');
    const shard = this.options.shards.find(({ id }) => id === shardId)!;
    const cameAt = performance.now() - reply.elapsedTime;
    const agent = mayWait ? this.waits : isOfWorker(request) ? this.workerCalls : this.calls;
    const ask = () => this.ask(shard, agent, request, cameAt, gone);
    const answer = agent === this.calls ? await this.counted(request.caller?.tenant ?? '', ask) : await ask();
    const headers = Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.has(name));
    for (const [name, value] of headers) if (value !== undefined) reply.header(name, value);
    reply.code(answer.status).serializer((body: unknown) => body as string);
    reply.send(answer.body);
  }

  /** Refuses what is too much at once: whatever waits here holds its request in memory. */
  private async counted<T>(tenant: string, call: () => Promise<T>): Promise<T> {
    if (!this.room.tryTake(tenant)) {
      const detail = 'As many calls wait for the leader as the node can hold; try again shortly.';
      throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
    }
    try {
      return await call();
    } finally {
      this.room.giveBack(tenant);
    }
  }

  private async ask(
    shard: FollowedShard,
    agent: Agent,
    request: FastifyRequest,
    cameAt: number,
    signal: AbortSignal,
  ): Promise<Answer> {
    let deadline = performance.now() + PATIENCE_MS;
    let lastTerm: AbortSignal | null = null;
    for (;;) {
      const leader = shard.knownLeader();
      const askedAt = performance.now();
      const patience = deadline - askedAt;
      // Subscribed before the leader is asked, because the news may come meanwhile.
      const next = shard.leaderNews.next(leader === null ? patience : RETRY_PAUSE_MS);
      if (leader !== null) {
        try {
          const waited = Math.round(askedAt - cameAt);
          const answer = await withAnyOf([signal, leader.over, this.givenUp.signal], (gone) =>
            this.askOnce(agent, leader.url, request, waited, gone),
          );
          if (isNoLeader(answer)) shard.suspectLeader();
          else if (!this.isNotBelieved(request, answer)) return answer;
        } catch (error) {
          if (!signal.aborted) shard.suspectLeader();
          if (signal.aborted || !isRepeatable(request, error)) {
            throw noLeader(
              'The leader was lost before it answered; whether it acted on the request is not known.',
            );
          }
        }
      }
      const lostAt = performance.now();
      // A request that waited that long had a leader, so its patience begins anew, but once per term only.
      if (leader !== null && leader.over !== lastTerm && lostAt - askedAt > CONNECT_TIMEOUT_MS) {
        lastTerm = leader.over;
        deadline = lostAt + PATIENCE_MS;
      }
      if (lostAt > deadline) throw noLeader('The shard has no leader at the moment; try again shortly.');
      if (!this.closing) await next;
      if (this.closing) throw shuttingDown();
    }
  }

  /**
   * Whether the leader does not believe this node, which has checked the key of the client: their clocks differ for a moment,
   * e.g. because that of the database was set. Nothing was done then, and the client has no reason to doubt its key.
   */
  private isNotBelieved(request: FastifyRequest, { status }: Answer): boolean {
    return status === 401 && this.options.credentialFor(request) !== null;
  }

  private async askOnce(
    agent: Agent,
    url: string,
    request: FastifyRequest,
    waitedMs: number,
    signal: AbortSignal,
  ): Promise<Answer> {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(request.headers)) {
      if (typeof value === 'string' && !HOP_BY_HOP.has(name)) headers[name] = value;
    }
    headers[FORWARDED] = this.options.mark(request);
    headers[WAITED] = String(waitedMs);
    const credential = this.options.credentialFor(request);
    if (credential !== null) headers.authorization = `Bearer ${credential}`;
    // Origin and path apart, the path as it came: nothing in a request can name another host, and nothing is
    // normalised into a route that was not checked here.
    const answer = await agent.request({
      origin: new URL(url).origin,
      path: request.url,
      method: request.method as Dispatcher.HttpMethod,
      headers,
      signal,
      ...(request.rawBody && { body: request.rawBody }),
    });
    const body = Buffer.from(await answer.body.arrayBuffer());
    return { status: answer.statusCode, headers: answer.headers, body };
  }
}

function openAgent(trust: PeerTrust, connections: number | null): Agent {
  return new Agent({
    connections,
    connect: trust.connect(CONNECT_TIMEOUT_MS),
    headersTimeout: ANSWER_TIMEOUT_MS,
  });
}

/** How long a request that may wait has done so at earlier leaders: its client counts from the beginning. */
export function waitedMs({ headers }: FastifyRequest): number {
  const waited = Number(headers[WAITED] ?? 0);
  return waited > 0 ? waited : 0;
}

/**
 * Whether a request may be made again: if it only reads, is declared repeatable, has an Idempotency-Key, or certainly did
 * not arrive.
 */
function isRepeatable({ method, headers, routeOptions }: FastifyRequest, error: unknown): boolean {
  const { route } = routeOptions.config;
  if (method === 'GET' || route?.repeatable) return true;
  if (route?.idempotent === true && headers[IDEMPOTENCY_KEY] !== undefined) return true;
  return NOT_SENT.has((error as NodeJS.ErrnoException).code ?? '');
}

/** Whether the node that was asked does not lead either. */
function isNoLeader(answer: Answer): boolean {
  return answer.status === 503 && answer.headers['punctual-no-leader'] !== undefined;
}

function noLeader(detail: string): PunctualError {
  return new PunctualError('NO_LEADER', detail, { retryAfter: 1 });
}
