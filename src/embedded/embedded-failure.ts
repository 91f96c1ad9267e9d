import { messageOf, PunctualError } from '../core/errors.js';

/** The advice that always applies. */
export const OWN_DATABASE =
  'Give a Postgres of your own with --database-url (PUNCTUAL_DATABASE_URL) instead.';

/** An error of the embedded server; `detail` says in sentences what went wrong and what to do. */
export function embeddedFailure(detail: string, cause?: unknown): PunctualError {
  return new PunctualError('EMBEDDED_POSTGRES', detail, cause === undefined ? {} : { cause });
}

const ADVICE: Readonly<Record<string, string>> = {
  EACCES: 'This user may not write there. Choose another folder with --data, or change its permissions.',
  EPERM: 'This user may not change it. Choose another folder with --data, or change its permissions.',
  EROFS: 'The file system is read-only. Choose another folder with --data.',
  ENOSPC: 'The disk is full. Make room, or choose another folder with --data.',
  EDQUOT: 'The disk quota is used up. Make room, or choose another folder with --data.',
  ENOTDIR: 'A part of the path is not a folder. Choose another folder with --data.',
  EEXIST: 'There is a file of that name. Choose another folder with --data.',
};

/** Turns an error of the file system or of a program into one that says what to do. */
export function explain(thrown: unknown, doing: string): PunctualError {
  if (thrown instanceof PunctualError) return thrown;
  const message = messageOf(thrown);
  const advice = ADVICE[codeOf(thrown) ?? ''] ?? OWN_DATABASE;
  return embeddedFailure(`${doing}: ${message}. ${advice}`, thrown);
}

const FULL = new Set(['ENOSPC', 'EDQUOT']);

/** Whether something failed because a disk was full; it may work once there is space. */
export function isDiskFull(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return (
    FULL.has(codeOf(thrown) ?? '') ||
    /no space left|disk quota/i.test(thrown.message) ||
    isDiskFull(thrown.cause)
  );
}

/** The error code of a failed system call, if the value is one. */
export function codeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}
