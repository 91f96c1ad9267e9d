import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LeaderElsewhere } from '../../cluster/leader-elsewhere.js';
import { invalid } from '../../core/errors.js';
import { validate } from '../../core/schemas/validate.js';
import { SHARD_HEADER } from '../../core/wire.js';
import type { NodeContext } from '../context.js';
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
import { type Authenticate, bringsOperatorKey } from './access.js';
import type { DescribeRoute } from './describe-route.js';
import { type Forwarding, waitedMs } from './forwarding.js';
import type { LongPolls } from './long-polls.js';
import type { HttpLog } from './options.js';
import { queryReader } from './query.js';
import { refuseOtherStreams } from './request-body.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The declaration that the route was made from. */
    route?: Route;
  }
}

const SHARD_NUMBER = /^\d{1,4}$/;

/** What routes are served with. */
interface ServingParts {
  readonly node: NodeContext;
  readonly limits: HttpLimits;
  readonly longPolls: LongPolls;
  readonly forwarding: Forwarding;
  readonly authenticate: Authenticate;
  readonly describe: DescribeRoute;
  readonly log: HttpLog;
}

/**
 * Makes the HTTP route of a declaration. Credential and body have been handled before: the route checks the input,
 * runs, and answers, here or at the leader.
 */
export function serveRoute(server: FastifyInstance, route: Route, parts: ServingParts): void {
  const { node, limits, longPolls, forwarding } = parts;
  const readQuery = queryReader(route.query);
  const checkBody = route.body?.check ?? checkNothing;
  const answerTo = answerer(route);
  const maxBytes = route.body?.maxBytes;
  server.route({
    method: route.method,
    url: route.path,
    ...(maxBytes !== undefined && { bodyLimit: typeof maxBytes === 'number' ? maxBytes : maxBytes(limits) }),
    config: { scope: route.scope, route },
    ...(route.body?.kind === 'stream' && { onRequest: refuseOtherStreams(route.body) }),
    schema: parts.describe(route),
    handler: async (request, reply) => {
      const call = new HttpCall(request, reply, route, parts);
      try {
        const input = {
          node,
          caller: request.caller,
          query: readQuery(request.query as Record<string, unknown>),
          params: route.params ? validate(route.params, request.params) : request.params,
          body: await checkBody(request.body),
          call,
        };
        return answerTo(reply, await route.run(input as never));
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

  constructor(
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    private readonly route: Route,
    private readonly parts: ServingParts,
  ) {}

  get shard(): number {
    return shardOf(this.request);
  }

  get waitedMs(): number {
    return waitedMs(this.request);
  }

  wait<T>(kind: WaitKind, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.waitsFor = kind;
    return this.parts.longPolls.run(this.reply, kind, run);
  }

  stream(kind: WaitKind, tell: (stream: AnswerStream) => Promise<void>): Promise<void> {
    const answer = otherAnswer(this.route.answers[200], 'stream');
    if (!answer) throw new Error('the route declares no stream');
    return this.wait(kind, async (gone) => {
      const stream = new HttpStream(this.reply, answer.type, gone);
      try {
        await tell(stream);
        stream.open();
        this.reply.raw.end();
      } catch (error) {
        if (!stream.isOpen) throw error;
        // The headers are sent, so the error can only be shown by breaking the answer off.
        this.parts.log.error({ err: error, requestId: this.request.id }, 'an answer broke off');
        this.reply.raw.destroy();
      }
    });
  }

  bringsOperatorKey(): Promise<boolean> {
    return bringsOperatorKey(this.request, this.parts.authenticate);
  }
}

/** An answer that is sent in pieces over HTTP. */
class HttpStream implements AnswerStream {
  isOpen = false;
  private drained: Promise<void> | undefined;

  constructor(
    private readonly reply: FastifyReply,
    private readonly type: string,
    readonly gone: AbortSignal,
  ) {}

  open(): void {
    if (this.isOpen) return;
    this.isOpen = true;
    this.reply.hijack();
    // The connection is not needed afterwards, and a closing server would wait for it.
    const headers = { ...this.reply.getHeaders(), 'content-type': this.type, connection: 'close' };
    this.reply.raw.writeHead(200, headers as OutgoingHttpHeaders).flushHeaders();
  }

  write(piece: string): Promise<void> | undefined {
    this.open();
    const { raw } = this.reply;
    if (raw.write(piece)) return undefined;
    // One promise for all pieces that wait: a stalled reader must not gather listeners.
    this.drained ??= new Promise((resolve) => {
      const goOn = () => {
        raw.off('drain', goOn).off('close', goOn);
        this.drained = undefined;
        resolve();
      };
      raw.once('drain', goOn).once('close', goOn);
    });
    return this.drained;
  }
}
