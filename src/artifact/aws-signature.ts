import { createHash, createHmac } from 'node:crypto';

/** Signature Version 4 of AWS, as stores of objects ask for it: in a header, or in the query of an address. */

/** Who signs, and where. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

/** A request as it is signed. */
export interface AwsRequest {
  readonly method: string;
  /** The host, with the port where it is not the usual one. */
  readonly host: string;
  /** Not encoded, beginning with a slash. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** By names in lower case, without `host`; all of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What stands in place of the hash of a body that is not signed. */
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
/** The hash of no body. */
export const NO_PAYLOAD = createHash('sha256').digest('hex');

const ALGORITHM = 'AWS4-HMAC-SHA256';
const SERVICE = 's3';
/** An address that says it is valid for longer is refused. */
const LONGEST_SECONDS = 7 * 86_400;

/** The headers of a request with those that sign it. */
export function signedHeaders(
  credentials: AwsCredentials,
  request: AwsRequest,
  payloadHash: string,
  nowMs: number,
): Record<string, string> {
  const date = amzDate(nowMs);
  const headers = { ...request.headers, 'x-amz-content-sha256': payloadHash, 'x-amz-date': date };
  const signed = { ...request, headers };
  const names = headerNames(signed);
  const signature = signatureOf(credentials, signed, payloadHash, date);
  const credential = `${credentials.accessKeyId}/${scopeOf(credentials, date)}`;
  return {
    ...headers,
    authorization: `${ALGORITHM} Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

/** The query of an address that is signed for some time; its request must have the headers that were signed. */
export function signedQuery(
  credentials: AwsCredentials,
  request: AwsRequest,
  validForMs: number,
  nowMs: number,
): string {
  const date = amzDate(nowMs);
  const query = {
    ...request.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${credentials.accessKeyId}/${scopeOf(credentials, date)}`,
    'X-Amz-Date': date,
    'X-Amz-Expires': String(Math.min(Math.max(1, Math.floor(validForMs / 1_000)), LONGEST_SECONDS)),
    'X-Amz-SignedHeaders': headerNames(request),
  };
  const signature = signatureOf(credentials, { ...request, query }, UNSIGNED_PAYLOAD, date);
  return `${queryText(query)}&X-Amz-Signature=${signature}`;
}

/** A path with every part encoded. */
export function encodedPath(path: string): string {
  return path.split('/').map(encode).join('/');
}

/** A query in the form in which it is signed. */
export function queryText(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function signatureOf(
  { secretAccessKey, region }: AwsCredentials,
  request: AwsRequest,
  payloadHash: string,
  date: string,
): string {
  const { method, path, query } = request;
  // By names alone: one name may begin with another, and the colon comes after some of what may follow.
  const headers = Object.entries({ ...request.headers, host: request.host })
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, ' ')}\n`);
  const canonical = [
    ...[method, encodedPath(path), queryText(query), headers.join('')],
    ...[headerNames(request), payloadHash],
  ].join('\n');
  const scope = scopeOf({ region }, date);
  const text = [ALGORITHM, date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const steps = [date.slice(0, 8), region, SERVICE, 'aws4_request'];
  const key = steps.reduce<string | Buffer>((key, step) => hmac(key, step), `AWS4${secretAccessKey}`);
  return hmac(key, text).toString('hex');
}

function headerNames({ headers }: Pick<AwsRequest, 'headers'>): string {
  return [...Object.keys(headers), 'host'].sort().join(';');
}

function scopeOf({ region }: Pick<AwsCredentials, 'region'>, date: string): string {
  return `${date.slice(0, 8)}/${region}/${SERVICE}/aws4_request`;
}

/** `20130524T000000Z` */
function amzDate(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** Everything but letters, digits and `-._~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
