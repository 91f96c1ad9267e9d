import { PunctualError } from '../core/errors.js';
import type { Cli } from './cli.js';
import { bytesText, type Output } from './output.js';
import { Progress, progressBar } from './progress-line.js';

/** What uploads and downloads of artifacts have in common. */

const BAR_WIDTH = 30;

/** Shows how far a transfer has come: a bar on a terminal, lines from time to time elsewhere. */
export async function withProgress<T>(
  cli: Cli,
  { json }: Output,
  what: string,
  work: (onProgress: (done: number, size: number) => void) => Promise<T>,
): Promise<T> {
  const progress = new Progress({ screen: cli.stderr, now: cli.now });
  try {
    return await work((done, size) => {
      if (json && !progress.live) return;
      const share = `${Math.floor((100 * done) / size)}% of ${bytesText(size)}`;
      progress.show(
        `${what}  ${progressBar(done / size, BAR_WIDTH)}  ${share}`,
        `${what}  ${share}`,
        done === size,
      );
    });
  } finally {
    progress.clear();
  }
}

/** The path leads to nothing that can be read or written as it was asked for. */
const UNUSABLE: readonly string[] = ['ENOENT', 'EACCES', 'EISDIR', 'ENOTDIR', 'EEXIST'];

/** Says of a file that cannot be used which one it is. */
export async function readable<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (UNUSABLE.includes(code ?? ''))
      throw new PunctualError('USAGE', `${path} cannot be used: ${(error as Error).message}.`);
    throw error;
  }
}
