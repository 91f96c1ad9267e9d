import type { AnnouncedArtifact, ArtifactView } from '../core/artifact.js';
import { PunctualError } from '../core/errors.js';
import type { ArtifactRow } from '../store/artifacts.js';

/** An artifact as it is shown. */
export function viewOfArtifact(row: ArtifactRow): ArtifactView {
  const { id, name, version, sha256, size, runnable, kind, machine, job, output } = row;
  const isReady = row.state === 'ready';
  return {
    ...{ id, name, version, sha256, size },
    ...{ state: isReady ? 'ready' : 'pending', runnable, kind, machine },
    ...{ createdAt: time(row.created_at), createdBy: row.created_by },
    readyAt: row.ready_at === null ? null : time(row.ready_at),
    expiresAt: isReady ? null : time(row.expires_at),
    ...{ job, output },
  };
}

/** One whose bytes are there: nothing is to be uploaded. */
export function uploadedView(row: ArtifactRow): AnnouncedArtifact {
  const nothing = { uploadUrl: null, uploadHeaders: {}, parts: null, mustComplete: false };
  return { ...viewOfArtifact(row), isNew: false, ...nothing };
}

/** What the audit keeps of an artifact. */
export function auditView({ name, version, sha256, size, runnable, state }: ArtifactRow): object {
  return { name, version, sha256, size, runnable, state };
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

/** The error for an artifact that the tenant does not have. */
export function noArtifact(what: string): PunctualError {
  return new PunctualError('ARTIFACT_NOT_FOUND', `There is no artifact ${what}.`);
}
