import type { ArtifactKind } from '../core/artifact.js';
import { ELF_HEAD_BYTES, readElf } from '../core/elf.js';
import { PunctualError } from '../core/errors.js';

/** What an artifact must be. */
export interface ArtifactRules {
  /** Whether a worker is to run it. */
  readonly runnable: boolean;
  /** Whether scripts may be run. */
  readonly scripts: boolean;
}

/** What the beginning of the bytes says they are. */
export interface Inspected {
  readonly kind: ArtifactKind;
  /** The processor that a program is made for. */
  readonly machine: string | null;
}

/** Says what bytes are, by their beginning. Throws ARTIFACT_NOT_RUNNABLE. */
export function inspect(head: Buffer, size: number, { runnable, scripts }: ArtifactRules): Inspected {
  const elf = readElf(head, size);
  if (elf.isProgram) return { kind: 'elf', machine: elf.machine };
  const isScript = head.length > 2 && head[0] === 0x23 && head[1] === 0x21;
  if (isScript && (scripts || !runnable)) return { kind: 'script', machine: null };
  if (!runnable) return { kind: 'file', machine: null };
  const allowed = isScript ? '; this server takes no scripts (PUNCTUAL_ALLOW_SCRIPTS)' : '';
  throw new PunctualError('ARTIFACT_NOT_RUNNABLE', `The artifact cannot be run: ${elf.why}${allowed}.`);
}

/** Passes bytes on once their beginning was inspected, so that wrong ones are refused before the rest of them has come. */
export async function* inspectedBytes(
  pieces: AsyncIterable<Buffer>,
  size: number,
  rules: ArtifactRules,
  tell: (found: Inspected) => void,
): AsyncGenerator<Buffer> {
  let waiting: Buffer[] | null = [];
  let bytes = 0;
  for await (const piece of pieces) {
    if (waiting === null) {
      yield piece;
      continue;
    }
    waiting.push(piece);
    bytes += piece.length;
    if (bytes < Math.min(size, ELF_HEAD_BYTES)) continue;
    const all: Buffer = Buffer.concat(waiting);
    waiting = null;
    tell(inspect(all.subarray(0, ELF_HEAD_BYTES), size, rules));
    yield all;
  }
  // Fewer bytes than were said: whoever counts them says so.
  if (waiting !== null) yield* waiting;
}
