import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * A server of objects that takes nothing on trust: it checks signatures, as the documentation of Signature Version 4 describes them, and
 * shares no code with the product. It keeps everything in memory.
 */
export class S3Server {
  readonly objects = new Map<string, Buffer>();
  /** What is being joined, by the ids of uploads. */
  readonly uploads = new Map<
    string,
    { readonly key: string; readonly parts: Map<number, Buffer>; begunAt: number }
  >();
  /** The requests that it has answered, as `METHOD /path`. */
  readonly answered: string[] = [];
  /** The statuses of the next answers, before anything is done. */
  readonly failures: number[] = [];
  /** Whether connections are cut before they are answered. */
  isDown = false;
  /** Whether objects are sent by half, and then the connection is cut. */
  isCutting = false;
  /** How long it takes to answer requests by their methods, in milliseconds. */
  readonly slow = new Map<string, number>();
  /** When objects were written, by their keys. */
  readonly writtenAt = new Map<string, number>();
  readonly bucket = 'bucket';
  readonly accessKeyId = 'AKIDTEST';
  readonly secretAccessKey = 'secret/of+the=test';
  readonly region = 'eu-test-1';
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<S3Server> {
    const server = new S3Server();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The settings of a node that uses the bucket. */
  settings(prefix = 'some/prefix') {
    return {
      artifactStore: `s3://${this.bucket}/${prefix}`,
      ...{ s3Endpoint: this.endpoint, s3Region: this.region },
      ...{ s3AccessKeyId: this.accessKeyId, s3SecretAccessKey: this.secretAccessKey },
    };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.isDown) return void request.socket.destroy();
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    // What broke off is never complete, and so never stored.
    if (!request.complete) return;
    await pause(this.slow.get(request.method!) ?? 0);
    const failure = this.failures.shift();
    if (failure !== undefined) return fail(response, failure, 'SlowDown', 'Please reduce your request rate.');
    const url = new URL(request.url!, 'http://server');
    const mistake = this.#mistakeOf(request, url, body);
    if (mistake) return fail(response, 403, mistake, 'The request is not what it says it is.');
    this.answered.push(`${request.method} ${url.pathname}`);
    const [, bucket, ...rest] = url.pathname.split('/').map(decodeURIComponent);
    if (bucket !== this.bucket) return fail(response, 404, 'NoSuchBucket', 'There is no such bucket.');
    this.#answer(request, response, rest.join('/'), url, body);
  }

  #answer(request: IncomingMessage, response: ServerResponse, key: string, url: URL, body: Buffer): void {
    const { method } = request;
    if (url.searchParams.has('uploads') || url.searchParams.has('uploadId')) {
      this.#join(request, response, key, url, body);
      return;
    }
    if (method === 'GET' && key === '') {
      this.#list(response, url.searchParams);
      return;
    }
    if (method === 'PUT') {
      this.objects.set(key, body);
      this.writtenAt.set(key, Date.now());
      response.end();
      return;
    }
    if (method === 'DELETE') {
      this.objects.delete(key);
      response.writeHead(204).end();
      return;
    }
    const object = this.objects.get(key);
    if (!object) {
      fail(response, 404, 'NoSuchKey', 'There is no such key.');
      return;
    }
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const part = range ? object.subarray(Number(range[1]), Number(range[2]) + 1) : object;
    response.writeHead(range ? 206 : 200, { 'content-length': part.length, etag: etagOf(object) });
    if (method === 'HEAD') response.end();
    else if (this.isCutting)
      response.write(part.subarray(0, part.length / 2), () => response.socket?.destroy());
    else response.end(part);
  }

  #join(request: IncomingMessage, response: ServerResponse, key: string, url: URL, body: Buffer): void {
    const { method, headers } = request;
    const id = url.searchParams.get('uploadId');
    if (id === null) {
      if (method === 'GET') {
        const entries = [...this.uploads].map(
          ([uploadId, { key: each, begunAt }]) =>
            `<Upload><Key>${each}</Key><UploadId>${uploadId}</UploadId><Initiated>${new Date(begunAt).toISOString()}</Initiated></Upload>`,
        );
        response.end(`<ListMultipartUploadsResult>${entries.join('')}</ListMultipartUploadsResult>`);
        return;
      }
      const uploadId = `upload/${this.uploads.size}+${key.length}`;
      this.uploads.set(uploadId, { key, parts: new Map(), begunAt: Date.now() });
      response.end(
        `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`,
      );
      return;
    }
    const upload = this.uploads.get(id);
    if (upload?.key !== key) {
      fail(response, 404, 'NoSuchUpload', 'There is no such upload.');
      return;
    }
    if (method === 'DELETE') {
      this.uploads.delete(id);
      response.writeHead(204).end();
    } else if (method === 'PUT') {
      const source = decodeURIComponent(String(headers['x-amz-copy-source'])).replace(`/${this.bucket}/`, '');
      const object = this.objects.get(source);
      if (!object || etagOf(object) !== headers['x-amz-copy-source-if-match']) {
        fail(response, 412, 'PreconditionFailed', 'The source is another one.');
        return;
      }
      upload.parts.set(Number(url.searchParams.get('partNumber')), object);
      response.end(`<CopyPartResult><ETag>${etagOf(object)}</ETag></CopyPartResult>`);
    } else {
      const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]+)<\/ETag>/g)];
      const parts = named.map(([, number]) => upload.parts.get(Number(number)));
      const isSmall = parts.slice(0, -1).some((part) => !part || part.length < 5 * 1024 * 1024);
      if (isSmall || named.some(([, , etag], index) => etag !== etagOf(parts[index]!))) {
        // As the real one does, which may answer 200 before it knows.
        response.end(
          '<?xml version="1.0"?><Error><Code>InvalidPart</Code><Message>A part is wrong.</Message></Error>',
        );
        return;
      }
      this.objects.set(key, Buffer.concat(parts as Buffer[]));
      this.uploads.delete(id);
      response.end('<CompleteMultipartUploadResult/>');
    }
  }

  #list(response: ServerResponse, query: URLSearchParams): void {
    const [prefix, after] = [query.get('prefix') ?? '', query.get('start-after') ?? ''];
    const found = [...this.objects]
      .filter(([key]) => key.startsWith(prefix) && key > after)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, Number(query.get('max-keys')));
    const entries = found.map(
      ([key, bytes]) =>
        `<Contents><Key>${key.replaceAll('&', '&amp;')}</Key><Size>${bytes.length}</Size>` +
        `<LastModified>${new Date(this.writtenAt.get(key) ?? 0).toISOString()}</LastModified></Contents>`,
    );
    response.end(`<?xml version="1.0"?><ListBucketResult>${entries.join('')}</ListBucketResult>`);
  }

  /** The code of what is wrong with the signature; null if it is right. */
  #mistakeOf(request: IncomingMessage, url: URL, body: Buffer): string | null {
    const inQuery = url.searchParams.has('X-Amz-Signature');
    const given = inQuery ? ofQuery(url) : ofHeader(request);
    if (!given) return 'AccessDenied';
    const { credential, signature, names, date } = given;
    const [keyId, day, region, service, end] = credential.split('/');
    if (keyId !== this.accessKeyId) return 'InvalidAccessKeyId';
    if (region !== this.region || service !== 's3' || end !== 'aws4_request' || day !== date.slice(0, 8))
      return 'AuthorizationHeaderMalformed';
    const at = Date.parse(date.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z'));
    const ageMs = Date.now() - at;
    if (inQuery ? ageMs > Number(url.searchParams.get('X-Amz-Expires')) * 1_000 : Math.abs(ageMs) > 900_000)
      return 'RequestTimeTooSkewed';
    if (!names.includes('host')) return 'AccessDenied';
    const declared = inQuery ? 'UNSIGNED-PAYLOAD' : String(request.headers['x-amz-content-sha256']);
    if (declared !== 'UNSIGNED-PAYLOAD' && declared !== createHash('sha256').update(body).digest('hex'))
      return 'XAmzContentSHA256Mismatch';
    let canonical = `${request.method}\n${url.pathname}\n`;
    const pairs = url.search
      .slice(1)
      .split('&')
      .filter((pair) => pair && !pair.startsWith('X-Amz-Signature='));
    canonical += `${pairs.sort().join('&')}\n`;
    for (const name of names) canonical += `${name}:${String(request.headers[name]).trim()}\n`;
    canonical += `\n${names.join(';')}\n${declared}`;
    const digest = createHash('sha256').update(canonical).digest('hex');
    const text = `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/s3/aws4_request\n${digest}`;
    let key = createHmac('sha256', `AWS4${this.secretAccessKey}`).update(day!).digest();
    for (const step of [this.region, 's3', 'aws4_request'])
      key = createHmac('sha256', key).update(step).digest();
    const expected = createHmac('sha256', key).update(text).digest('hex');
    return expected === signature ? null : 'SignatureDoesNotMatch';
  }
}

function etagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}

interface Given {
  readonly credential: string;
  readonly signature: string;
  readonly names: readonly string[];
  readonly date: string;
}

function ofHeader({ headers }: IncomingMessage): Given | null {
  const found = /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? '',
  );
  if (!found) return null;
  const names = found[2]!.split(';');
  if (!names.includes('x-amz-date') || !names.includes('x-amz-content-sha256')) return null;
  return { credential: found[1]!, names, signature: found[3]!, date: String(headers['x-amz-date']) };
}

function ofQuery({ searchParams }: URL): Given | null {
  const get = (name: string) => searchParams.get(`X-Amz-${name}`) ?? '';
  if (get('Algorithm') !== 'AWS4-HMAC-SHA256') return null;
  return {
    ...{ credential: get('Credential'), signature: get('Signature'), date: get('Date') },
    names: get('SignedHeaders').split(';'),
  };
}

function fail(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`);
}
