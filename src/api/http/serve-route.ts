import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LeaderElsewhere } from '../../cluster/leader-elsewhere.js';
import type { AuditAuthor } from '../../core/audit.js';
import { invalid } from '../../core/errors.js';
import { validate } from '../../core/schemas/validate.js';
import { readTraceparent, TRACEPARENT } from '../../core/trace-context.js';
import { SHARD_HEADER } from '../../core/wire.js';
import type { Caller } from '../caller.js';
import type { NodeContext } from '../context.js';
import { type AnswerKeeper, IDEMPOTENCY_KEY, type Idempotency } from '../idempotency.js';
import {
  Answer,
  type AnswerStream,
  type Call,
  checkNothing,
  type HttpLimits,
  type OtherAnswer,
  type Route,
  type WaitKind,
} from '../route.js';
import { type Authenticate, bringsOperatorKey, type Sessions } from './access.js';
import { type Forwarding, waitedMs } from './forwarding.js';
import type { LongPolls } from './long-polls.js';
import type { HttpLog } from './options.js';
import { queryReader } from './query.js';
import { refuseOtherStreams } from './request-body.js';
import { isSecure, servedOrigin } from './same-origin.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The declaration that the route was made from. */
    route?: Route;
  }
}

/** How long a client has to take the end of a stream. */
const LAST_PIECES_MS = 1_000;

const SHARD_NUMBER = /^\d{1,4}$/;

/** What routes are served with. */
interface ServingParts {
  readonly node: NodeContext;
  readonly limits: HttpLimits;
  readonly longPolls: LongPolls;
  readonly forwarding: Forwarding;
  readonly idempotency: Idempotency;
  readonly authenticate: Authenticate;
  readonly sessions?: Sessions;
  readonly log: HttpLog;
  readonly clientAddress?: (request: FastifyRequest) => string | null;
  readonly countRequest?: (keyId: string) => void;
}

/**
 * Makes the HTTP route of a declaration. Credential and body have been handled before: the route checks the input,
 * runs, and answers, here or at the leader.
 */
export function serveRoute(server: FastifyInstance, route: Route, parts: ServingParts): void {
  const { node, limits, longPolls, forwarding, idempotency } = parts;
  const readQuery = queryReader(route.query);
  const checkBody = route.body?.check ?? checkNothing;
  const answerTo = answerer(route);
  const maxBytes = route.body?.maxBytes;
  const run = async (request: FastifyRequest, call: HttpCall): Promise<unknown> => {
    const input = {
      node,
      caller: request.caller,
      query: readQuery(request.query as Record<string, unknown>),
      params: route.params ? validate(route.params, request.params) : request.params,
      body: await checkBody(request.body),
      call,
    };
    return route.run(input as never);
  };
  server.route({
    method: route.method,
    url: route.path,
    ...(maxBytes !== undefined && { bodyLimit: typeof maxBytes === 'number' ? maxBytes : maxBytes(limits) }),
    config: { scope: route.scope, route },
    ...(route.body?.kind === 'stream' && { onRequest: refuseOtherStreams(route.body) }),
    handler: async (request, reply) => {
      const call = new HttpCall(request, reply, route, parts);
      try {
        const key = route.idempotent === true ? request.headers[IDEMPOTENCY_KEY] : undefined;
        if (key === undefined) return answerTo(reply, await run(request, call));
        const { params, query, rawBody: body } = request;
        const asked = { route, params, query, body };
        const answer = await idempotency.serve(request.caller as Caller, String(key), asked, (keeper) => {
          call.keeper = keeper;
          return run(request, call);
        });
        return answerTo(reply, answer);
      } catch (error) {
        // The leader is elsewhere and nothing was done here, so the request is forwarded. A streamed body cannot be,
        // because what was read of it is gone.
        if (!(error instanceof LeaderElsewhere) || route.body?.kind === 'stream') throw error;
        await longPolls.runOn(reply, call.waitsFor, (gone) =>
          forwarding.forward(error.shard, request, reply, gone, call.waitsFor !== undefined),
        );
        return reply;
      }
    },
  });
}

/** How a route answers with the result of its `run`. */
function answerer({ answers }: Route): (reply: FastifyReply, result: unknown) => FastifyReply {
  const [status = 200] = Object.keys(answers).map(Number);
  const text = otherAnswer(answers[status], 'text');
  return (reply, result) => {
    if (reply.sent) return reply;
    if (text) reply.type(text.type);
    if (result instanceof Answer) return reply.code(result.status).headers(result.headers).send(result.body);
    return reply.code(status).send(status === 204 ? undefined : result);
  };
}

function otherAnswer(answer: unknown, kind: OtherAnswer['kind']): OtherAnswer | null {
  const isOther = typeof answer === 'object' && answer !== null && 'kind' in answer && answer.kind === kind;
  return isOther ? (answer as OtherAnswer) : null;
}

/** The shard that a worker or another node names. */
function shardOf({ headers }: FastifyRequest): number {
  const text = headers[SHARD_HEADER] ?? '0';
  if (typeof text !== 'string' || !SHARD_NUMBER.test(text))
    throw invalid([{ pointer: `/${SHARD_HEADER}`, detail: 'must be the number of a shard' }]);
  return Number(text);
}

/** The call that an HTTP request makes. */
class HttpCall implements Call {
  /** What the call waits for, if it has begun to wait. */
  waitsFor: WaitKind | undefined;
  keeper: AnswerKeeper | undefined;

  constructor(
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    private readonly route: Route,
    private readonly parts: ServingParts,
  ) {}

  get shard(): number {
    return shardOf(this.request);
  }

  get traceparent(): string | null {
    return readTraceparent(this.request.headers[TRACEPARENT]);
  }

  get waitedMs(): number {
    return waitedMs(this.request);
  }

  get author(): AuditAuthor {
    const { request, parts } = this;
    const { clientAddress = ({ socket }: FastifyRequest) => socket.remoteAddress ?? null } = parts;
    const caller = request.caller && 'actor' in request.caller ? request.caller : null;
    return {
      ...{ keyId: caller?.key?.id ?? null, keyName: caller?.actor ?? '' },
      ...{ address: clientAddress(request), requestId: request.id },
    };
  }

  get isSecure(): boolean {
    return isSecure(this.request);
  }

  get origin(): string {
    return servedOrigin(this.request)?.origin ?? '';
  }

  get range(): string | null {
    return this.request.headers.range ?? null;
  }

  get contentLength(): number | null {
    const { 'content-length': length } = this.request.headers;
    return length === undefined ? null : Number(length);
  }

  get accept(): string {
    return this.request.headers.accept ?? '';
  }

  wait<T>(kind: WaitKind, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.waitsFor = kind;
    return this.parts.longPolls.run(this.reply, kind, run);
  }

  stream(kind: WaitKind, tell: (stream: AnswerStream) => Promise<void>, named?: string): Promise<void> {
    const declared = otherAnswer(this.route.answers[200], 'stream');
    const type = named ?? declared?.type;
    if (type === undefined) throw new Error('the route declares no stream');
    return this.wait(kind, async (gone) => {
      const stream = new HttpStream(this.reply, { type, headers: declared?.headers }, gone);
      try {
        // HEAD asks for the headers alone, and a stream has no end to wait for.
        if (this.request.method !== 'HEAD') await tell(stream);
        stream.end();
      } catch (error) {
        if (!stream.isOpen) throw error;
        // The headers are sent, so the error can only be shown by breaking the answer off.
        this.parts.log.error({ err: error, requestId: this.request.id }, 'an answer broke off');
        this.reply.raw.destroy();
      }
    });
  }

  get lastEventId(): string | null {
    const { 'last-event-id': id } = this.request.headers;
    return typeof id === 'string' ? id : null;
  }

  countFor(keyId: string): void {
    this.parts.countRequest?.(keyId);
  }

  bringsOperatorKey(): Promise<boolean> {
    return bringsOperatorKey(this.request, this.parts.authenticate, this.parts.sessions);
  }
}

/** An answer that is sent in pieces over HTTP. */
class HttpStream implements AnswerStream {
  isOpen = false;
  private drained: Promise<void> | undefined;

  constructor(
    private readonly reply: FastifyReply,
    private readonly answer: Pick<OtherAnswer, 'type'> & {
      readonly headers: OtherAnswer['headers'] | undefined;
    },
    readonly gone: AbortSignal,
  ) {}

  get unsent(): number {
    return this.reply.raw.writableLength;
  }

  open(): void {
    if (this.isOpen) return;
    this.isOpen = true;
    this.reply.hijack();
    // The connection is not needed afterwards, and a closing server would wait for it.
    const { type, headers: more } = this.answer;
    const headers = { ...this.reply.getHeaders(), ...more, 'content-type': type, connection: 'close' };
    this.reply.raw.writeHead(200, headers as OutgoingHttpHeaders).flushHeaders();
  }

  drop(): void {
    this.reply.raw.destroy();
  }

  /** Ends the answer. A client that does not take the rest of it in time must not keep the server from closing. */
  end(): void {
    this.open();
    const { raw } = this.reply;
    raw.end();
    if (raw.writableLength === 0 || raw.destroyed) return;
    const timer = setTimeout(() => raw.destroy(), LAST_PIECES_MS).unref();
    raw.once('close', () => clearTimeout(timer));
  }

  write(piece: string | Buffer): Promise<void> | undefined {
    this.open();
    const { raw } = this.reply;
    if (raw.destroyed || raw.write(piece) || this.gone.aborted) return undefined;
    // One promise for all pieces that wait: a stalled reader must not gather listeners.
    this.drained ??= new Promise((resolve) => {
      const goOn = () => {
        raw.off('drain', goOn).off('close', goOn);
        this.gone.removeEventListener('abort', goOn);
        this.drained = undefined;
        resolve();
      };
      raw.once('drain', goOn).once('close', goOn);
      // Who waits for a client that does not read must hear that the server closes, too.
      this.gone.addEventListener('abort', goOn);
    });
    return this.drained;
  }
}
