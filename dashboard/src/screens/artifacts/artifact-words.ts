import type { ArtifactView } from '../../../../src/core/artifact.js';

/** What an artifact is called: by its name and version, as what a job has left, or by its hash. */
export function artifactTitle({ name, version, output, sha256 }: ArtifactView): string {
  if (name !== null) return `${name}@${version}`;
  return output ?? sha256.slice(0, 16);
}

/** What its bytes are. */
export function kindText({ kind, machine, runnable }: ArtifactView): string {
  if (kind === null) return runnable ? 'not checked yet' : 'a file';
  if (kind === 'elf') return machine === null ? 'program' : `program for ${machine}`;
  return kind === 'script' ? 'script' : 'file';
}
