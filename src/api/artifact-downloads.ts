import type { ByteRange } from '../artifact/artifact-store.js';
import { PunctualError } from '../core/errors.js';
import { ContentQuery, SignedQuery } from '../core/schemas/artifact.js';
import { IdPath } from '../core/schemas/query.js';
import { verifyDownload } from '../core/tokens.js';
import { type ArtifactRow, findArtifact } from '../store/artifacts.js';
import { noArtifact } from './artifact-view.js';
import { mustFind } from './artifacts.js';
import type { NodeContext } from './context.js';
import { forbidden } from './restrictions.js';
import { Answer, type Call, type OtherAnswer, type Route, route } from './route.js';

const BYTES: OtherAnswer = {
  kind: 'stream',
  type: 'application/octet-stream',
  description: 'The bytes.',
};
const PART_OF_BYTES: OtherAnswer = { ...BYTES, description: 'The range of bytes that was asked for.' };
const ONE_RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/;

/** The bytes of artifacts on their way out: for keys, and for whoever has a signed address. */
export const artifactDownloadRoutes: readonly Route[] = [
  route({
    id: 'readArtifact',
    method: 'GET',
    path: '/v1/artifacts/:id/content',
    tag: 'artifacts',
    summary: 'The bytes of an artifact, or a range of them.',
    scope: 'read',
    params: IdPath,
    query: ContentQuery,
    answers: { 200: BYTES, 206: PART_OF_BYTES },
    run: async ({ node, caller, params: { id }, query: { tenant = caller.tenant }, call }) => {
      if (tenant !== caller.tenant && !caller.operator) throw forbidden('The key belongs to another tenant.');
      return bytesOf(node, await mustFind(node, { ...caller, tenant }, id), call);
    },
  }),
  route({
    id: 'downloadArtifact',
    method: 'GET',
    path: '/v1/artifacts/:id/download',
    tag: 'artifacts',
    summary: 'The same with a signed address, which needs no key.',
    scope: 'public',
    params: IdPath,
    query: SignedQuery,
    answers: { 200: BYTES, 206: PART_OF_BYTES },
    run: async ({ node, params: { id }, query: { token }, call }) => {
      const [{ clock }] = node.shards;
      const claims = verifyDownload(node.secret, token, clock.now());
      if (claims?.artifact !== id)
        throw new PunctualError(
          'FORBIDDEN',
          'The address of the download has expired or was not signed by this cluster.',
        );
      const row = await findArtifact(node.shardOf(claims.tenant).pool, claims.tenant, id);
      if (!row) throw noArtifact(id);
      return bytesOf(node, row, call);
    },
  }),
];

async function bytesOf({ artifacts, transfers }: NodeContext, row: ArtifactRow, call: Call): Promise<Answer> {
  const { id, tenant, sha256, size } = row;
  if (row.state !== 'ready')
    throw new PunctualError('ARTIFACT_PENDING', `Artifact ${id} is not uploaded yet.`);
  const range = rangeOf(call.range, size);
  const headers = {
    'accept-ranges': 'bytes',
    etag: `"${sha256}"`,
    'content-disposition': dispositionOf(row),
  };
  if (range === 'unsatisfiable')
    throw new PunctualError('RANGE_NOT_SATISFIABLE', `The artifact has ${size} bytes.`);
  const end = transfers.begin(tenant);
  try {
    const bytes = await artifacts.open(sha256, range ?? undefined);
    if (bytes === null)
      throw new PunctualError(
        'ARTIFACT_STORE_UNAVAILABLE',
        `The bytes of artifact ${id} are not in the store.`,
      );
    bytes.once('close', end);
    transfers.serve(bytes);
    const { start, end: last } = range ?? { start: 0, end: size };
    return new Answer(range ? 206 : 200, bytes, {
      ...headers,
      'content-type': 'application/octet-stream',
      'content-length': String(last - start),
      ...(range && { 'content-range': `bytes ${start}-${last - 1}/${size}` }),
    });
  } catch (error) {
    end();
    throw error;
  }
}

/**
 * Has a browser save the bytes and never show them: a page in them would have the rights of the dashboard. What a job has left
 * keeps its name, which may be any text.
 */
export function dispositionOf({
  id,
  name,
  version,
  output,
}: Pick<ArtifactRow, 'id' | 'name' | 'version' | 'output'>): string {
  if (name !== null) return `attachment; filename="${name}-${version}"`;
  if (output === null) return `attachment; filename="${id}"`;
  // What stays as it is in an address, but may not in this header.
  const file = encodeURIComponent(output.slice(output.lastIndexOf('/') + 1)).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename*=UTF-8''${file}`;
}

/** The range that a request asks for; null for all. Of several ranges, and of what cannot be read, all are sent: that is allowed. */
export function rangeOf(header: string | null, size: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = ONE_RANGE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(Number(last) + 1, size);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return null;
  return start < end ? { start, end } : 'unsatisfiable';
}
