import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { Happening } from './happening.js';

const SOURCE = fileURLToPath(new URL('./programs/hostile.c', import.meta.url));

/** Why programs in C cannot be compiled here; null if they can. */
export const NO_COMPILER = compilerProblem();

function compilerProblem(): string | null {
  if (process.platform !== 'linux') return 'there are no Linux binaries here';
  try {
    execFileSync('cc', ['--version'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'there is no C compiler';
  }
}

/** The bytes of the program of `programs/hostile.c`, linked statically. */
export function hostileProgram(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-hostile-'));
  try {
    const file = join(folder, 'hostile');
    execFileSync('cc', ['-O1', '-static', '-o', file, SOURCE], { stdio: 'pipe' });
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Shows whether processes live: they open the file and write a line. Its end is read when the last of them is gone, however it
 * ended, and wherever it had hidden.
 */
export class LifeLine {
  readonly folder: string;
  readonly path: string;
  /** Each time that a process has opened it. */
  readonly up = new Happening<string>();
  readonly gone: Promise<void>;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'punctual-life-'));
    this.path = join(this.folder, 'line');
    execFileSync('mkfifo', ['-m', '0666', this.path]);
    execFileSync('chmod', ['0711', this.folder]);
    const stream = createReadStream(this.path, { encoding: 'utf8' });
    stream.on('data', (text) => {
      for (const line of String(text).trim().split('\n')) this.up.happen(line);
    });
    this.gone = new Promise((resolve) => stream.on('end', () => resolve()));
    onTestFinished(() => {
      // Lets a stream go on that nobody has opened for writing.
      if (existsSync(this.path)) execFileSync('sh', ['-c', `: <> ${this.path}`]);
      stream.destroy();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }
}
