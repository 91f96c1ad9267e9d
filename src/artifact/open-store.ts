import { join } from 'node:path';
import type { Config } from '../core/config.js';
import type { ArtifactStore } from './artifact-store.js';
import { FolderStore } from './folder-store.js';

/** The store that the settings name. Nothing is read or written before it is used. */
export function openStore({ artifactStore, data }: Pick<Config, 'artifactStore' | 'data'>): ArtifactStore {
  return new FolderStore(artifactStore === '' ? join(data, 'artifacts') : artifactStore);
}
