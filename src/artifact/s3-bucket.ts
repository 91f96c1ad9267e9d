import { createHash } from 'node:crypto';
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
  readonly method: 'GET' | 'PUT' | 'POST' | 'HEAD' | 'DELETE';
  /** The key of an object; empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body, which is sent once, and the hash by which the server checks it. */
  readonly body?: { readonly stream: AsyncIterable<Buffer>; readonly hash: string };
  /** Breaks it off. */
  readonly signal?: AbortSignal | undefined;
  /** A short body instead, which may be sent again. */
  readonly text?: string;
}

/** An object as it was read: it is the same as long as its tag is. */
export interface TaggedObject {
  readonly key: string;
  readonly etag: string;
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

  /** Bytes of an object, of which an answer that breaks off is a fault of the bucket. */
  async *explained(bytes: Readable): AsyncGenerator<Buffer> {
    try {
      yield* bytes as AsyncIterable<Buffer>;
    } catch (error) {
      throw new Unavailable(`broke off: ${messageOf(error)}`, true, error);
    }
  }

  /** The bytes of an object, with its tag; null if it is not there. */
  async getTagged(key: string): Promise<(TaggedObject & { readonly bytes: Readable }) | null> {
    const answer = await this.find({ method: 'GET', key });
    return answer && { key, etag: String(answer.headers.etag), bytes: answer.body };
  }

  /**
   * Makes one object of others, in their order, without their bytes leaving the server; fails if one of them is not what it was when it was
   * read. All but the last must have 5 MiB.
   */
  async join(key: string, parts: readonly TaggedObject[]): Promise<void> {
    const begun = await this.askText({ method: 'POST', key, query: { uploads: '' } });
    const uploadId = unescaped(tagIn(begun, 'UploadId'));
    try {
      const joined: string[] = [];
      for (const [index, part] of parts.entries()) {
        const partNumber = String(index + 1);
        const copied = await this.askText({
          ...{ method: 'PUT', key, query: { partNumber, uploadId } },
          headers: {
            'x-amz-copy-source': encodedPath(`/${this.options.bucket}/${part.key}`),
            'x-amz-copy-source-if-match': part.etag,
          },
        });
        const etag = tagIn(copied, 'ETag');
        joined.push(`<Part><PartNumber>${partNumber}</PartNumber><ETag>${etag}</ETag></Part>`);
      }
      const text = `<CompleteMultipartUpload>${joined.join('')}</CompleteMultipartUpload>`;
      await this.askText({ method: 'POST', key, query: { uploadId }, text });
    } catch (error) {
      await this.giveUp(key, uploadId).catch(() => undefined);
      throw error;
    }
  }

  /** Gives up what was begun to be joined before a moment and never ended: it takes room and can be seen nowhere else. */
  async giveUpUnfinished(prefix: string, before: number): Promise<void> {
    const text = await this.askText({ method: 'GET', key: '', query: { uploads: '', prefix } });
    for (const [, entry = ''] of text.matchAll(/<Upload>([\s\S]*?)<\/Upload>/g)) {
      if (Date.parse(tagIn(entry, 'Initiated')) >= before) continue;
      await this.giveUp(unescaped(tagIn(entry, 'Key')), unescaped(tagIn(entry, 'UploadId')));
    }
  }

  private async giveUp(key: string, uploadId: string): Promise<void> {
    const answer = await this.find({ method: 'DELETE', key, query: { uploadId } });
    await answer?.body.dump();
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
    const text = await this.askText({ method: 'GET', key: '', query });
    return Array.from(text.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g), ([, entry = '']) => ({
      key: unescaped(tagIn(entry, 'Key')),
      size: Number(tagIn(entry, 'Size')),
      at: Date.parse(tagIn(entry, 'LastModified')),
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

  async close(): Promise<void> {
    await this.pool.destroy();
  }

  /** The text of an answer, which may be an error although its status is none. */
  private async askText(request: BucketRequest): Promise<string> {
    const answer = await this.ask(request);
    const text = await answer.body.text();
    if (/<Error>/.test(text)) throw refusalIn(answer.statusCode, text);
    return text;
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
    const { method, key, query = {}, headers = {}, body, text: content, signal } = request;
    const path = this.pathOf(key);
    const signed = signedHeaders(
      this.options,
      { method, host: this.host, path, query, headers },
      body?.hash ?? (content === undefined ? NO_PAYLOAD : sha256(content)),
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
        ...(content !== undefined && { body: content }),
        ...(signal && { signal }),
      });
    } catch (error) {
      // What is wrong with the bytes that came is no fault of the bucket.
      if (source !== undefined) throw source;
      throw new Unavailable(`cannot be reached: ${messageOf(error)}`, true, error);
    }
    if (answer.statusCode < 300) return answer;
    const { statusCode } = answer;
    throw refusalIn(statusCode, (await answer.body.text().catch(() => '')).slice(0, MOST_ERROR_BYTES));
  }

  private pathOf(key: string): string {
    return `${this.base}/${key}`;
  }
}

/** The error that an answer stands for. */
function refusalIn(statusCode: number, text: string): Error {
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1];
  const message = /<Message>([^<]{1,300})<\/Message>/.exec(text)?.[1];
  const said = [`answered ${statusCode}`, code, message && unescaped(message)].filter(Boolean).join(', ');
  if (statusCode === 404 && code !== 'NoSuchBucket') return new NoObject(said, false, undefined);
  return new Unavailable(said, statusCode >= 500 || statusCode === 429, undefined);
}

/** The text of an element; empty if there is none. */
function tagIn(text: string, name: string): string {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1] ?? '';
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
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

/** There is no such object, which is no fault where it is looked for. */
class NoObject extends Unavailable {}

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
