import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { messageOf, PunctualError } from '../core/errors.js';
import {
  type AwsCredentials,
  encodedPath,
  NO_PAYLOAD,
  queryText,
  signedHeaders,
  signedQuery,
} from './aws-signature.js';

/** Where a bucket is, and by whose key it is used. */
export interface BucketOptions extends AwsCredentials {
  readonly bucket: string;
  /** The address of an S3-compatible server; empty for AWS. */
  readonly endpoint: string;
}

/** Objects of one list. */
export const LISTED_AT_ONCE = 1_000;

/** An object as a list shows it. */
export interface StoredObject {
  readonly key: string;
  readonly size: number;
  /** When it was written, by the server's clock. */
  readonly at: number;
}

/** One request. */
interface BucketRequest {
  readonly method: 'GET' | 'PUT' | 'HEAD' | 'DELETE';
  /** The key of an object; empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body, which is sent once, and the hash by which the server checks it. */
  readonly body?: { readonly stream: AsyncIterable<Buffer>; readonly hash: string };
  /** Breaks it off. */
  readonly signal?: AbortSignal | undefined;
}

type Answer = Dispatcher.ResponseData;

const CONNECT_TIMEOUT_MS = 5_000;
/** How long the server may take to answer after it has got all, and be silent while it answers. */
const ANSWER_TIMEOUT_MS = 30_000;
const MOST_CONNECTIONS = 64;
/** How often a request without a body is made that met a failure which may pass. */
const TRIES = 4;
const FIRST_PAUSE_MS = 100;
/** The most of an error's text that is read. */
const MOST_ERROR_BYTES = 16 * 1024;

/**
 * Requests to one bucket. What has no body is repeated a few times while the server is busy or cannot be reached; a body is read as
 * it is sent, and so is sent once. Everything has a deadline.
 */
export class S3Bucket {
  private readonly pool: Pool;
  private readonly host: string;
  /** What stands before the keys in paths. */
  private readonly base: string;
  private readonly origin: string;

  constructor(private readonly options: BucketOptions) {
    const { bucket, region, endpoint } = options;
    const address = new URL(endpoint === '' ? `https://${bucket}.s3.${region}.amazonaws.com` : endpoint);
    this.origin = address.origin;
    this.host = address.host;
    // Servers of one's own mostly have no host for each bucket.
    this.base = `${address.pathname.replace(/\/+$/, '')}${endpoint === '' ? '' : `/${bucket}`}`;
    this.pool = new Pool(address.origin, {
      connections: MOST_CONNECTIONS,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
    });
  }

  /** Stores an object. `hash` is what its bytes must have, or says that nothing is checked. */
  async put(key: string, size: number, body: NonNullable<BucketRequest['body']>): Promise<void> {
    const answer = await this.ask({ method: 'PUT', key, headers: { 'content-length': String(size) }, body });
    await answer.body.dump();
  }

  /** The bytes of an object, all or a range of them; null if it is not there. */
  async get(key: string, range?: { readonly start: number; readonly end: number }): Promise<Readable | null> {
    const headers = range ? { range: `bytes=${range.start}-${range.end - 1}` } : {};
    const answer = await this.find({ method: 'GET', key, headers });
    return answer?.body ?? null;
  }

  /** The bytes of an object, of which an answer that breaks off is a fault of the bucket. */
  async *explained(bytes: Readable): AsyncGenerator<Buffer> {
    try {
      yield* bytes as AsyncIterable<Buffer>;
    } catch (error) {
      throw new Unavailable(`broke off: ${messageOf(error)}`, true, error);
    }
  }

  /** How many bytes an object has; null if it is not there. */
  async size(key: string, signal?: AbortSignal): Promise<number | null> {
    const answer = await this.find({ method: 'HEAD', key, signal });
    await answer?.body.dump();
    return answer && Number(answer.headers['content-length']);
  }

  /** Removes an object; no error if it is not there. */
  async remove(key: string, signal?: AbortSignal): Promise<void> {
    const answer = await this.find({ method: 'DELETE', key, signal });
    await answer?.body.dump();
  }

  /** The objects whose keys begin like this, in the order of their keys; as many as one list has, behind the given key. */
  async list(prefix: string, after = ''): Promise<StoredObject[]> {
    const behind = after === '' ? {} : { 'start-after': after };
    const query = { 'list-type': '2', 'max-keys': String(LISTED_AT_ONCE), prefix, ...behind };
    const answer = await this.ask({ method: 'GET', key: '', query });
    const text = await answer.body.text();
    return Array.from(text.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g), ([, entry = '']) => ({
      key: unescaped(/<Key>([\s\S]*?)<\/Key>/.exec(entry)?.[1] ?? ''),
      size: Number(/<Size>(\d+)<\/Size>/.exec(entry)?.[1]),
      at: Date.parse(/<LastModified>([^<]*)<\/LastModified>/.exec(entry)?.[1] ?? ''),
    }));
  }

  /** An address with which others may read or write an object for some time. The headers must be sent as they are. */
  address(
    method: 'GET' | 'PUT',
    key: string,
    headers: Readonly<Record<string, string>>,
    validForMs: number,
  ): string {
    const path = this.pathOf(key);
    const request = { method, host: this.host, path, query: {}, headers };
    return `${this.origin}${encodedPath(path)}?${signedQuery(this.options, request, validForMs, Date.now())}`;
  }

  /** Null if the object is not there. */
  private async find(request: BucketRequest): Promise<Answer | null> {
    try {
      return await this.ask(request);
    } catch (error) {
      if (error instanceof NoObject) return null;
      throw error;
    }
  }

  private async ask(request: BucketRequest): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.askOnce(request);
      } catch (error) {
        const mayPass = error instanceof Unavailable && error.mayPass;
        if (!mayPass || request.body || tries === TRIES || request.signal?.aborted) throw error;
        await pause(FIRST_PAUSE_MS * 2 ** (tries - 1), undefined, { signal: request.signal });
      }
    }
  }

  private async askOnce(request: BucketRequest): Promise<Answer> {
    const { method, key, query = {}, headers = {}, body, signal } = request;
    const path = this.pathOf(key);
    const signed = signedHeaders(
      this.options,
      { method, host: this.host, path, query, headers },
      body?.hash ?? NO_PAYLOAD,
      // A signature is refused whose time differs from the server's by much: that of this machine is nearest to it.
      Date.now(),
    );
    const text = queryText(query);
    let source: unknown;
    const stream = body && watched(body.stream, (error) => (source = error));
    let answer: Answer;
    try {
      answer = await this.pool.request({
        ...{ method, path: encodedPath(path) + (text === '' ? '' : `?${text}`), headers: signed },
        ...(stream && { body: stream as unknown as Readable }),
        ...(signal && { signal }),
      });
    } catch (error) {
      // What is wrong with the bytes that came is no fault of the bucket.
      if (source !== undefined) throw source;
      throw new Unavailable(`cannot be reached: ${messageOf(error)}`, true, error);
    }
    if (answer.statusCode < 300) return answer;
    throw await this.refusal(answer, method !== 'PUT' && key !== '');
  }

  private async refusal({ statusCode, body }: Answer, canBeMissing: boolean): Promise<Error> {
    const text = (await body.text().catch(() => '')).slice(0, MOST_ERROR_BYTES);
    const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1];
    if (statusCode === 404 && code !== 'NoSuchBucket' && canBeMissing) return new NoObject();
    const message = /<Message>([^<]{1,300})<\/Message>/.exec(text)?.[1];
    const said = [`answered ${statusCode}`, code, message && unescaped(message)].filter(Boolean).join(', ');
    return new Unavailable(said, statusCode >= 500 || statusCode === 429, undefined);
  }

  private pathOf(key: string): string {
    return `${this.base}/${key}`;
  }
}

/** The bucket cannot be used at the moment, or not at all. */
class Unavailable extends PunctualError {
  constructor(
    what: string,
    /** Whether trying again may help. */
    readonly mayPass: boolean,
    cause: unknown,
  ) {
    super('ARTIFACT_STORE_UNAVAILABLE', `The bucket for artifacts ${what}.`, { cause, retryAfter: 5 });
  }
}

/** There is no such object. */
class NoObject extends Error {}

/** Passes bytes on and tells if their source fails. */
async function* watched(
  pieces: AsyncIterable<Buffer>,
  onError: (error: unknown) => void,
): AsyncGenerator<Buffer> {
  try {
    yield* pieces;
  } catch (error) {
    onError(error);
    throw error;
  }
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&');
}
