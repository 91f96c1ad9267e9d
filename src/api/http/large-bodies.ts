import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { TenantRoom } from '../tenant-room.js';
import { isOfWorker } from './access.js';

/**
 * Keeps large bodies from filling the memory of a node. Their bytes are counted from the arrival of their headers until
 * they are answered, and a body that would be too much is refused before it is read. Bodies that have arrived are
 * handled few at a time, first come, first served. One that is being handled waits for no other, so there is no
 * deadlock.
 */

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a request whose body is large. */
    largeBody: LargeBody | null;
  }
}

/** Smaller bodies do not count. */
const LARGE_BYTES = 64 * 1024;
/** Smaller bodies are handled at once. */
const QUEUED_BYTES = 1024 * 1024;
/** Bytes that are handled at a time; a single larger body is handled alone. */
const HANDLED_BYTES = 32 * 1024 * 1024;
/** Bytes that arrive, wait and are handled together. */
const COUNTED_BYTES = 256 * 1024 * 1024;
/** The same for the bodies that workers send: they have room and a queue of their own, so that bulks cannot silence a worker. */
const COUNTED_WORKER_BYTES = 128 * 1024 * 1024;
const RETRY_AFTER_S = 1;

/** The large bodies of a server. */
export class LargeBodies {
  private readonly ofWorkers: BodyRoom;
  private readonly ofOthers: BodyRoom;

  constructor(maxBulkBytes: number) {
    // The largest must always fit, even for a tenant that sends two.
    const least = 4 * maxBulkBytes;
    this.ofWorkers = new BodyRoom(Math.max(COUNTED_WORKER_BYTES, least));
    this.ofOthers = new BodyRoom(Math.max(COUNTED_BYTES, least));
  }

  /** Counts every large body from now on. The credentials must have been checked by then. */
  watch(server: FastifyInstance): void {
    server.decorateRequest('largeBody', null);
    server.addHook('onRequest', (request, reply, done) => {
      const bytes = bytesOf(request);
      if (bytes <= LARGE_BYTES) return done();
      const room = isOfWorker(request) ? this.ofWorkers : this.ofOthers;
      const body = room.tryCount(request.caller?.tenant ?? '', bytes);
      if (!body) return done(tooBusy());
      request.largeBody = body;
      // A body that breaks off is never answered, so it is freed here. One that has arrived is handled to its end.
      reply.raw.once('close', () => {
        if (!body.hasArrived) body.end();
      });
      done();
    });
    server.addHook('onSend', (request, _reply, _payload, done) => {
      request.largeBody?.end();
      done();
    });
  }
}

/** Large bodies that are counted together and wait for each other. */
class BodyRoom {
  private readonly counted: TenantRoom;
  private handledBytes = 0;
  private readonly waiting: LargeBody[] = [];

  constructor(most: number) {
    this.counted = new TenantRoom(most);
  }

  /** Null when there is no room for the body. */
  tryCount(tenant: string, bytes: number): LargeBody | null {
    return this.counted.tryTake(tenant, bytes) ? new LargeBody(this, tenant, bytes) : null;
  }

  queueUp(body: LargeBody): void {
    this.waiting.push(body);
    this.letIn();
  }

  /** The body was answered or broke off. */
  leave({ tenant, bytes, isHandled }: LargeBody): void {
    this.counted.giveBack(tenant, bytes);
    if (isHandled) this.handledBytes -= bytes;
    this.letIn();
  }

  private letIn(): void {
    for (let next = this.waiting[0]; next; next = this.waiting[0]) {
      if (this.handledBytes > 0 && this.handledBytes + next.bytes > HANDLED_BYTES) return;
      this.waiting.shift();
      this.handledBytes += next.bytes;
      next.start();
    }
  }
}

/** A large body between its headers and its answer. */
class LargeBody {
  hasArrived = false;
  isHandled = false;
  private hasEnded = false;
  private readonly started: Promise<void>;
  private resolve: () => void = () => undefined;

  constructor(
    private readonly room: BodyRoom,
    readonly tenant: string,
    readonly bytes: number,
  ) {
    this.started = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** To be called when all of it is here; resolves when it may be handled. */
  arrive(): Promise<void> {
    this.hasArrived = true;
    if (this.bytes <= QUEUED_BYTES) return Promise.resolve();
    this.room.queueUp(this);
    return this.started;
  }

  start(): void {
    this.isHandled = true;
    this.resolve();
  }

  /** To be called when it was answered or broke off; may be called again. */
  end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.room.leave(this);
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
 * What the body will weigh in memory. One that does not say may become as large as the route takes; one that is read as
 * it arrives is never there as a whole.
 */
function bytesOf({ headers, routeOptions }: FastifyRequest): number {
  if (routeOptions.config.route?.body?.kind === 'stream') return 0;
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (encoding !== undefined) return routeOptions.bodyLimit;
  return length === undefined ? 0 : Math.min(Number(length), routeOptions.bodyLimit);
}
