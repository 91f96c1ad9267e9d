import { Readable } from 'node:stream';
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import type { AuditAction, AuditAuthor } from '../core/audit.js';
import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import { type Defaulted, Nothing } from '../core/schemas/object.js';
import { maxItemsOf, validate, validateLong } from '../core/schemas/validate.js';
import type { AttemptCredential, Caller, Scope } from './caller.js';
import type { NodeContext } from './context.js';
import type { AnswerKeeper } from './idempotency.js';

/**
 * How a route is declared: once, beside its implementation. The HTTP route, its access check, the checks of path, query
 * and body, its entry in the OpenAPI document, and the tests of all routes are derived from the declaration.
 */

/** The limits of requests that the operator can set. */
export type HttpLimits = Pick<
  Config,
  'maxBulkBytes' | 'maxBulkJobs' | 'maxPayload' | 'maxDepth' | 'maxConnections'
>;

/** The most bytes of a body besides its payloads. */
const OVERHEAD_BYTES = 64 * 1024;

/** The size limit of a body that holds one payload. */
export const ONE_PAYLOAD = ({ maxPayload }: HttpLimits): number => maxPayload + OVERHEAD_BYTES;
/** The size limit of a body that holds many payloads. */
export const MANY_PAYLOADS = ({ maxBulkBytes }: HttpLimits): number => maxBulkBytes + OVERHEAD_BYTES;

type MaxBytes = number | ((limits: HttpLimits) => number);

interface JsonOptions {
  /** Default: 1 MiB. */
  readonly maxBytes?: MaxBytes;
  /** The field of the body, or of each item of its lists and maps, that is kept as its original text. */
  readonly text?: 'payload' | 'result';
  /** Another field of items that is kept as its original text; no item has both. */
  readonly orText?: 'workflow';
  /** A field of the body that is kept as its original text beside those of items. */
  readonly topText?: 'input';
  /** Fields of the body that hold long lists. */
  readonly lists?: readonly string[];
  /** The most items of such a list. Default: what the schema says. */
  readonly mostItems?: (limits: HttpLimits) => number;
  /** Fields of the body that hold many objects by their names. */
  readonly maps?: readonly string[];
  /** Whether the body may be left out, which means an empty object; `explained`: `run` says what an empty one lacks. */
  readonly optional?: true | 'explained';
}

/** A body of JSON. */
interface JsonBody<T> extends JsonOptions {
  readonly kind: 'json';
  readonly schema: TSchema;
  readonly check: (value: unknown) => T | Promise<T>;
}

/**
 * A body that is not JSON and is read as it arrives. It is not kept, so its route cannot be forwarded to the leader.
 */
export interface StreamBody<T> {
  readonly kind: 'stream';
  /** Its media type. */
  readonly type: string;
  /** Whether it may be of any other type, too. */
  readonly takesAny?: true;
  readonly maxBytes: number;
  readonly check: (value: unknown) => T;
}

/** A body of JSON as the schema describes it. */
export function json<S extends TSchema>(schema: S, options: JsonOptions = {}): JsonBody<Static<S>> {
  const { optional, lists } = options;
  const check = (value: unknown) =>
    lists ? validateLong(schema, value, lists) : validate(schema, optional ? (value ?? {}) : value);
  const longest = lists?.reduce((most, name) => Math.max(most, maxItemsOf(schema, name)), 0);
  return {
    ...(longest !== undefined && { mostItems: () => longest }),
    ...{ ...options, kind: 'json', schema, check },
  };
}

/** A body of JSON that is documented by the schema but checked by the route's `run`. */
export function jsonCheckedByRun(schema: TSchema, options: JsonOptions = {}): JsonBody<unknown> {
  return { ...options, kind: 'json', schema, check: (value) => value };
}

/** A body of any other media type, read in chunks; one that is too large fails while it is read. */
export function stream(type: string, maxBytes: number): StreamBody<AsyncIterable<Buffer>> {
  return { kind: 'stream', type, maxBytes, check: (value) => bounded(value as Readable, maxBytes) };
}

/** A body of bytes, whatever they are called; how many there may be is for the route to say. */
export const anyBytes: StreamBody<Readable> = {
  kind: 'stream',
  type: 'application/octet-stream',
  takesAny: true,
  maxBytes: Number.MAX_SAFE_INTEGER,
  // A request without a body has none to stream.
  check: (value) => (value ?? Readable.from([])) as Readable,
};

async function* bounded(pieces: Readable, maxBytes: number): AsyncIterable<Buffer> {
  let bytes = 0;
  for await (const piece of pieces as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    yield piece;
  }
}

/** The error for a streamed body that is too large. */
export function tooLarge(maxBytes: number): PunctualError {
  return new PunctualError('BODY_TOO_LARGE', `The body is larger than ${maxBytes} bytes.`);
}

/** Checks that a route without a body is sent none, or an empty object. */
export function checkNothing(value: unknown): undefined {
  if (value !== undefined && value !== null) validate(Nothing, value);
  return undefined;
}

/** An answer that is text, or a stream that lasts as long as the client listens. */
export interface OtherAnswer {
  readonly kind: 'text' | 'stream';
  /** Its media type, with parameters. */
  readonly type: string;
  readonly description: string;
  /** Headers of a stream besides the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * What a route answers, by status: a schema, something else than JSON, or a sentence about an answer without a body.
 */
type Answers = Readonly<Record<number, TSchema | OtherAnswer | string>>;

/** An answer with an explicit status or headers. A plain value gets the only success status of the route. */
export class Answer {
  constructor(
    readonly status: number,
    readonly body: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

/** What calls wait for. Each kind has its own limit, so that one kind cannot shut out another. */
export type WaitKind = 'results' | 'work' | 'nodes' | 'events' | 'bytes';

/** An answer that is sent in pieces. */
export interface AnswerStream {
  /** Aborts when the client leaves or the server closes. */
  readonly gone: AbortSignal;
  /** Sends the headers of the answer. Before that an error is answered as usual. */
  open(): void;
  /** Sends a piece; if it returns a promise, the next piece should wait for it. */
  write(piece: string | Buffer): Promise<void> | undefined;
  /** How many bytes the client has not taken yet. */
  readonly unsent: number;
  /** Breaks the answer off, without waiting for the client to take the rest. */
  drop(): void;
}

/** The call of a request, for routes that wait, stream, or need to know more about it. */
export interface Call {
  /** The shard that the request is about, where that does not follow from its caller; 0 unless it names another. */
  readonly shard: number;
  /** How long the request has waited at earlier leaders, which counts towards the wait that it asks for. */
  readonly waitedMs: number;
  /** The context of the trace that the request is part of. */
  readonly traceparent: string | null;
  /** Who makes the call, and from where, for the audit. */
  readonly author: AuditAuthor;
  /** Keeps the answer to a request with an Idempotency-Key; missing without one. */
  readonly keeper?: AnswerKeeper | undefined;
  /** Whether the browser of the caller keeps cookies that are for secure connections only. */
  readonly isSecure: boolean;
  /** Scheme and host by which the client reaches this node. */
  readonly origin: string;
  /** The header `range`. */
  readonly range: string | null;
  /** How many bytes the body has; null if the request does not say. */
  readonly contentLength: number | null;
  /** The header `accept`. */
  readonly accept: string;
  /** Runs work that may wait; its signal aborts when the client leaves or the server closes. */
  wait<T>(kind: WaitKind, run: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /**
   * Answers with a stream, which ends when `tell` returns. The route declares it among its answers, or names its media type
   * if it also answers in another form.
   */
  stream(kind: WaitKind, tell: (stream: AnswerStream) => Promise<void>, type?: string): Promise<void>;
  /** The last event that a client of an event stream has seen, as it says when it connects again. */
  readonly lastEventId: string | null;
  /** Counts the request as one of a key that came in its body, as those are counted that bring theirs in a header. */
  countFor(keyId: string): void;
  /** Whether the caller of a public route sends an operator's key, and so may be told more. */
  bringsOperatorKey(): Promise<boolean>;
}

type CallerOf<S extends Scope> = S extends 'public'
  ? null
  : S extends 'attempt' | 'step'
    ? Caller | AttemptCredential
    : Caller;

type DefaultedIn<P extends TProperties> = {
  [K in keyof P as P[K] extends Defaulted ? K : never]: Static<P[K]>;
};

/** The query as the schema describes it, with its defaults. */
type QueryOf<Q extends TObject> = Static<Q> & (Q extends TObject<infer P> ? DefaultedIn<P> : unknown);

/** The checked input of a route. */
export interface Input<S extends Scope, P extends TSchema, Q extends TObject, B> {
  readonly node: NodeContext;
  readonly caller: CallerOf<S>;
  readonly params: Static<P>;
  readonly query: QueryOf<Q>;
  readonly body: B;
  readonly call: Call;
}

/** The sections of the OpenAPI document. */
export const TAGS = {
  jobs: 'Submit, read and steer jobs.',
  batches: 'Jobs that start together or not at all.',
  attempts: 'Reports about one attempt, by a key or by its token.',
  workers: 'What workers say, and what is known about them.',
  queues: 'Named lists of waiting jobs of a tenant.',
  origins: 'What http targets call: circuits, pauses and limits.',
  tasks: 'Definitions: what the jobs of a name run and take by default.',
  schedules: 'When tasks run, and the ledger of what became of it.',
  workflows: 'Graphs of jobs: steps that wait for other steps.',
  artifacts: 'Programs and files that jobs run, by name and version.',
  tenants: 'Tenants, their shares and limits.',
  events: 'What happens, as it happens.',
  keys: 'Keys, what they may do, and their ends.',
  sessions: 'Signing in to the dashboard, and who one is.',
  secrets: 'What calls to other systems need and nobody is shown again.',
  audit: 'Who did what, from where, when, and what it changed.',
  cluster: 'Leaders, nodes and figures.',
  health: 'For probes and monitoring.',
} as const;

interface Declaration<S extends Scope, P extends TSchema, Q extends TObject, B> {
  /** The name of the operation. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path, with `:name` for the fields of `params`. */
  readonly path: `/${string}`;
  /** Its section of the OpenAPI document; internal routes are not in it. */
  readonly tag: keyof typeof TAGS | 'internal';
  readonly summary: string;
  readonly scope: S;
  /** Whether a browser may call it from pages of the node itself only, and others have to say the same. */
  readonly fromOwnPages?: true;
  readonly params?: P;
  /** Default: the query must be empty. */
  readonly query?: Q;
  /** Default: there must be no body, or an empty object. */
  readonly body?: JsonBody<B> | StreamBody<B>;
  readonly answers: Answers;
  /**
   * The actions under which the audit records it, or why it does not. A test checks that every route that changes something
   * says so, except for submissions and the protocol of workers.
   */
  readonly audit?: AuditAction | readonly AuditAction[] | { readonly none: string };
  /** Whether a request that changes something may be repeated at the next leader if its answer was lost. */
  readonly repeatable?: true;
  /**
   * Of a POST: true if it takes the header Idempotency-Key, and then `run` gives its answer to `call.keeper` inside the
   * transaction of what it does; else why it does not need to. A test demands one or the other.
   */
  readonly idempotent?: true | string;
  /**
   * Does it. What only the leader can do throws `LeaderElsewhere` before anything is done, and the request moves on.
   */
  readonly run: (input: Input<S, P, Q, B>) => unknown;
}

/** A declared route. */
export interface Route extends Omit<Declaration<Scope, TSchema, TObject, unknown>, 'run'> {
  readonly run: (input: never) => unknown;
}

/** Declares a route. */
export function route<
  S extends Scope,
  P extends TSchema = TObject<Record<never, never>>,
  Q extends TObject = TObject<Record<never, never>>,
  B = undefined,
>(declaration: Declaration<S, P, Q, B>): Route {
  return declaration;
}

/** The schemas of all that is sent to routes. */
export function schemasOf(routes: readonly Route[]): TSchema[] {
  return routes.flatMap(({ params, query, body }) => [
    ...(params ? [params] : []),
    ...(query ? [query] : []),
    ...(body?.kind === 'json' ? [body.schema] : []),
  ]);
}
