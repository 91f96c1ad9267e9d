import type { ArtifactWithUses } from '../../../../src/core/artifact.js';
import { useResource } from '../../api/resource.js';
import { seesArtifacts } from '../../api/session.js';
import { addressOf } from '../../routing/root.js';
import { artifactTitle } from '../artifacts/artifact-words.js';

/** The artifact that a job runs, by its name and linked to its page; the id alone where it is gone. */
export function JobArtifact({ id }: { readonly id: string }) {
  const found = useResource<ArtifactWithUses>(
    seesArtifacts() ? `/v1/artifacts/${encodeURIComponent(id)}` : null,
  );
  const artifact = found.data.value;
  if (!artifact) return <>{id}</>;
  return <a href={addressOf(`/artifacts/${artifact.id}`)}>{artifactTitle(artifact)}</a>;
}
