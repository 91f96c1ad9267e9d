import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from './repository.js';

/** The name under which the program of a run is uploaded. */
export const PROGRAM = 'effects';

interface Announced {
  readonly uploadUrl: string | null;
}

/** The program of a run, compiled and uploaded, and the store that keeps it. */
export class ProgramStore {
  constructor(private readonly folder: string) {}

  /** What nodes keep artifacts in. */
  get path(): string {
    return join(this.folder, 'artifacts');
  }

  /** Compiles the program and uploads it through a node. */
  async upload(nodeUrl: string, apiKey: string): Promise<void> {
    const file = join(this.folder, PROGRAM);
    execFileSync('cc', ['-O1', '-static', '-o', file, join(repository, 'test', 'programs', 'effects.c')]);
    const bytes = readFileSync(file);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const answer = await fetch(`${nodeUrl}/v1/artifacts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: PROGRAM, version: '1', sha256, size: bytes.length }),
    });
    const { uploadUrl } = (await answer.json()) as Announced;
    const sent = await fetch(uploadUrl!, { method: 'PUT', body: bytes });
    if (!sent.ok) throw new Error(`the program was not taken: ${await sent.text()}`);
  }

  /** Takes the store away from all nodes; answers with what brings it back. */
  async takeAway(): Promise<() => Promise<void>> {
    const away = `${this.path}.away`;
    await rename(this.path, away);
    return () => rename(away, this.path);
  }
}
