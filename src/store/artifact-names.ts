import { readReference } from '../core/artifact.js';
import { type ArtifactRow, findArtifact, findNewest, findVersion } from './artifacts.js';
import type { Queryable } from './database.js';

/** The artifact that a reference means at this moment: by its id, a version, or a name for its newest version that is ready. */
export function findReferred(db: Queryable, tenant: string, text: string): Promise<ArtifactRow | null> {
  const reference = readReference(text);
  if (reference === null) return Promise.resolve(null);
  if ('id' in reference) return findArtifact(db, tenant, reference.id);
  const { name, version } = reference;
  return version === null ? findNewest(db, tenant, name) : findVersion(db, tenant, name, version);
}
