import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';

/**
 * Keeps large bodies from filling the memory of a node. Their bytes are counted from the arrival of their headers until
 * they are answered, and a body beyond the limit is refused before it is read. Bodies that have arrived are handled a
 * few at a time, in FIFO order. A body that is being handled waits for no other, so there is no deadlock.
 */

declare module 'fastify' {
  interface FastifyRequest {
    /** Set if the body is large. */
    largeBody: LargeBody | null;
  }
}

/** Smaller bodies are not counted. */
const LARGE_BYTES = 64 * 1024;
/** Smaller bodies are handled without queueing: reports of workers must not wait for bulks. */
const QUEUED_BYTES = 1024 * 1024;
/** The most bytes that are handled at a time; a single larger body is handled alone. */
const HANDLED_BYTES = 32 * 1024 * 1024;
/** The most bytes of all large bodies together. One tenant may use half of them, so that others have room. */
const COUNTED_BYTES = 256 * 1024 * 1024;
const RETRY_AFTER_S = 1;

/** The large bodies of a server. */
export class LargeBodies {
  private counted = 0;
  private readonly countedOf = new Map<string, number>();
  private handled = 0;
  private readonly waiting: LargeBody[] = [];
  private readonly most: number;

  constructor(maxBulkBytes: number) {
    // A body of the largest size must always fit, even for a tenant that sends two.
    this.most = Math.max(COUNTED_BYTES, 4 * maxBulkBytes);
  }

  /** Counts every large body from now on. Must be registered after the check of credentials. */
  watch(server: FastifyInstance): void {
    server.decorateRequest('largeBody', null);
    server.addHook('onRequest', (request, reply, done) => {
      const bytes = bytesOf(request);
      if (bytes <= LARGE_BYTES) done();
      else if (!this.fits(request.caller?.tenant ?? '', bytes)) done(tooBusy());
      else {
        const body = this.count(request.caller?.tenant ?? '', bytes);
        request.largeBody = body;
        // A body that breaks off is never answered, so it is uncounted here. One that has arrived is still handled.
        reply.raw.once('close', () => {
          if (!body.hasArrived) this.end(body);
        });
        done();
      }
    });
    server.addHook('onSend', (request, _reply, _payload, done) => {
      if (request.largeBody) this.end(request.largeBody);
      done();
    });
  }

  private fits(tenant: string, bytes: number): boolean {
    const ofTenant = this.countedOf.get(tenant) ?? 0;
    return this.counted + bytes <= this.most && ofTenant + bytes <= this.most / 2;
  }

  private count(tenant: string, bytes: number): LargeBody {
    this.counted += bytes;
    this.countedOf.set(tenant, (this.countedOf.get(tenant) ?? 0) + bytes);
    return new LargeBody(tenant, bytes, (body) => {
      this.waiting.push(body);
      this.letIn();
    });
  }

  private end(body: LargeBody): void {
    const { tenant, bytes } = body;
    if (body.hasEnded) return;
    body.hasEnded = true;
    this.counted -= bytes;
    const left = this.countedOf.get(tenant)! - bytes;
    if (left === 0) this.countedOf.delete(tenant);
    else this.countedOf.set(tenant, left);
    if (body.isHandled) this.handled -= bytes;
    this.letIn();
  }

  private letIn(): void {
    for (let next = this.waiting[0]; next; next = this.waiting[0]) {
      if (this.handled > 0 && this.handled + next.bytes > HANDLED_BYTES) return;
      this.waiting.shift();
      this.handled += next.bytes;
      next.start();
    }
  }
}

/** A large body between its headers and its answer. */
class LargeBody {
  hasArrived = false;
  isHandled = false;
  hasEnded = false;
  private readonly started: Promise<void>;
  private resolve: () => void = () => undefined;

  constructor(
    readonly tenant: string,
    readonly bytes: number,
    private readonly queueUp: (body: LargeBody) => void,
  ) {
    this.started = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** Must be called when the body has arrived completely; resolves when it may be handled. */
  arrive(): Promise<void> {
    this.hasArrived = true;
    if (this.bytes <= QUEUED_BYTES) return Promise.resolve();
    this.queueUp(this);
    return this.started;
  }

  start(): void {
    this.isHandled = true;
    this.resolve();
  }
}

function tooBusy(): PunctualError {
  return new PunctualError(
    'TOO_BUSY',
    'The node has as many large bodies as it can hold; try again shortly.',
    {
      retryAfter: RETRY_AFTER_S,
    },
  );
}

/**
 * How much memory the body will take. Without a length it may be as large as the route allows; a streamed body is never
 * in memory as a whole.
 */
function bytesOf({ headers, routeOptions }: FastifyRequest): number {
  if (routeOptions.config.route?.body?.kind === 'stream') return 0;
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (encoding !== undefined) return routeOptions.bodyLimit;
  return length === undefined ? 0 : Math.min(Number(length), routeOptions.bodyLimit);
}
