import { createHash } from 'node:crypto';
import type { AnnouncedArtifact, ArtifactView } from '../../../src/core/artifact.js';
import type { ApiUser } from '../../node-for-tests.js';

/** Announcing and uploading artifacts as a client does it. */

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** What an answer may also have. */
export interface Refusal {
  readonly code?: string;
  readonly detail?: string;
}

export const announce = (user: ApiUser, bytes: Uint8Array, fields: Record<string, unknown> = {}) =>
  user.ask<AnnouncedArtifact & Refusal>('POST', '/v1/artifacts', {
    body: { sha256: sha256(bytes), size: bytes.length, ...fields },
  });

/** Sends bytes to the address of an upload, without any key. */
export async function send(
  url: string,
  bytes: NonNullable<RequestInit['body']>,
  init: RequestInit & { readonly duplex?: 'half' } = {},
): Promise<{ readonly status: number; readonly body: ArtifactView & Refusal }> {
  const answer = await fetch(url, { method: 'PUT', body: bytes, ...init });
  return { status: answer.status, body: (await answer.json()) as ArtifactView & Refusal };
}

/** Uploads an artifact. */
export async function push(
  user: ApiUser,
  bytes: Uint8Array,
  fields: Record<string, unknown> = {},
): Promise<ArtifactView> {
  const { body } = await announce(user, bytes, fields);
  if (!body.uploadUrl) throw new Error(`nothing to upload: ${JSON.stringify(body)}`);
  const sent = await send(body.uploadUrl, Buffer.from(bytes));
  if (sent.status !== 200) throw new Error(`the upload was answered ${JSON.stringify(sent)}`);
  return sent.body;
}
