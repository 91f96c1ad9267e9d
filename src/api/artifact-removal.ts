import { PunctualError } from '../core/errors.js';
import { usesOf } from '../store/artifact-uses.js';
import { type ArtifactRow, forgetBytes, makeGone } from '../store/artifacts.js';
import { inTransaction, type Queryable } from '../store/database.js';
import { noArtifact } from './artifact-view.js';
import type { NodeContext } from './context.js';
import type { Shard } from './shard.js';

/**
 * Removes an artifact that nothing names, and its bytes if no other has the same. The row is marked first, by `mark`, which answers with
 * the hash: what breaks off afterwards is finished by the leader's upkeep.
 */
export async function removeArtifact(
  { artifacts }: Pick<NodeContext, 'artifacts'>,
  shard: Shard,
  row: ArtifactRow,
  also: (db: Queryable) => Promise<void>,
  mark: (db: Queryable) => Promise<string | null> = (db) => makeGone(db, row.tenant, row.id),
): Promise<void> {
  const { id } = row;
  const [use] = await usesOf(shard.pool, row, 1);
  if (use) {
    const detail = `Artifact ${id} is named by ${use.kind} ${use.name}; what is named stays.`;
    throw new PunctualError('ARTIFACT_IN_USE', detail);
  }
  const sha256 = await inTransaction(shard.pool, async (db) => {
    const gone = await mark(db);
    if (gone !== null) await also(db);
    return gone;
  });
  if (sha256 === null) throw noArtifact(id);
  await artifacts.abandon(id);
  await forgetBytes(shard.pool, sha256, (signal) => artifacts.remove(sha256, signal));
}
