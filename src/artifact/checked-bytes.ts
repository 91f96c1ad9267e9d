import { createHash } from 'node:crypto';
import { PunctualError } from '../core/errors.js';
import type { Blob } from './artifact-store.js';

/** Passes bytes on and fails at the end, before the store can take them for complete, if they are not those that were said. */
export async function* checkedBytes(blob: Blob, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  for await (const piece of sizedBytes(blob.size, pieces)) {
    hash.update(piece);
    yield piece;
  }
  const found = hash.digest('hex');
  if (found === blob.sha256) return;
  const detail = `The bytes have the SHA-256 ${found}, not ${blob.sha256}; nothing was stored.`;
  throw new PunctualError('ARTIFACT_HASH', detail);
}

/** Passes exactly so many bytes on; fails as soon as there are more, and at the end if there were fewer. */
export async function* sizedBytes(size: number, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > size) throw wrongSize(size, 'more');
    yield piece;
  }
  if (bytes < size) throw wrongSize(size, `only ${bytes}`);
}

function wrongSize(size: number, got: string): PunctualError {
  return new PunctualError(
    'ARTIFACT_SIZE',
    `${size} bytes were announced, and ${got} came; nothing was stored.`,
  );
}
