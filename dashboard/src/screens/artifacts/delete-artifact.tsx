import type { ArtifactView } from '../../../../src/core/artifact.js';
import { ActionButton } from '../../parts/action.js';
import { artifactTitle } from './artifact-words.js';

interface DeleteArtifactProps {
  readonly artifact: ArtifactView;
  readonly isSmall?: boolean;
  readonly onDone: () => void;
}

/** Removes an artifact that nothing names; the API refuses what would leave somebody without it. */
export function DeleteArtifact({ artifact, isSmall = false, onDone }: DeleteArtifactProps) {
  const { id } = artifact;
  const title = artifactTitle(artifact);
  return (
    <ActionButton
      isSmall={isSmall}
      action={{
        label: 'Delete',
        method: 'DELETE',
        path: `/v1/artifacts/${id}`,
        cli: `punctual artifact delete ${id}`,
        scope: 'admin',
        isDangerous: true,
        done: `${title} is deleted.`,
        question: {
          title: `Delete ${title}?`,
          text: 'Its bytes are gone for good. While a job, a schedule, a task or a definition names it, it stays.',
          verb: 'Delete',
          isDangerous: true,
        },
        onDone,
      }}
    />
  );
}
