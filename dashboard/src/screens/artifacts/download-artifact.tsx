import type { ArtifactView } from '../../../../src/core/artifact.js';
import { requestUrl, tenant } from '../../api/client.js';
import { seesArtifacts } from '../../api/session.js';
import { artifactTitle } from './artifact-words.js';

interface DownloadArtifactProps {
  readonly artifact: ArtifactView;
  readonly isSmall?: boolean;
}

/**
 * Saves the bytes of an artifact. The browser asks for them by itself, however many there are. It adds its session, but not the
 * header that names the tenant of an operator.
 */
export function DownloadArtifact({ artifact, isSmall = false }: DownloadArtifactProps) {
  const { id, state } = artifact;
  if (state !== 'ready' || !seesArtifacts()) return null;
  const { href } = requestUrl(`/v1/artifacts/${id}/content`, { tenant: tenant.value });
  return (
    <a
      class={isSmall ? 'button button-small' : 'button'}
      href={href}
      download
      aria-label={`Download ${artifactTitle(artifact)}`}
    >
      Download
    </a>
  );
}
