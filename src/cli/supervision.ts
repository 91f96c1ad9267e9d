import { ERROR_CODES, type ErrorCode } from '../core/errors.js';
import type { Supervisor } from './cli.js';

/**
 * The few words between `punctual up` and the processes it starts. They speak over the channel that Node opens
 * between parent and child: the kernel closes it when the parent dies, so a child always learns of it.
 */

/** Set for processes that `punctual up` starts, so that a channel opened by anyone else means nothing. */
export const SUPERVISED_VARIABLE = 'PUNCTUAL_SUPERVISED';

export type ChildMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly code: ErrorCode; readonly detail: string };

interface ChildProcessView {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly connected?: boolean;
  send?(message: unknown, callback: (error: Error | null) => void): boolean;
  once(event: 'disconnect', listener: () => void): unknown;
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CODES, code);

/** The supervisor of a process, if it has one. */
export function findSupervisor(child: ChildProcessView): Supervisor | null {
  if (child.env[SUPERVISED_VARIABLE] !== '1' || child.send === undefined) return null;
  const gone = new AbortController();
  if (child.connected) child.once('disconnect', () => gone.abort());
  else gone.abort();
  const tell = (message: ChildMessage): void => {
    if (child.connected) child.send?.(message, () => undefined);
  };
  return {
    gone: gone.signal,
    ready: () => tell({ type: 'ready' }),
    failed: (code, detail) => tell({ type: 'failed', code: isErrorCode(code) ? code : 'INTERNAL', detail }),
  };
}

/** Reads a message of a child; null when it is none of ours. */
export function readChildMessage(message: unknown): ChildMessage | null {
  if (typeof message !== 'object' || message === null) return null;
  const { type, code, detail } = message as Record<string, unknown>;
  if (type === 'ready') return { type };
  if (type !== 'failed' || typeof code !== 'string' || typeof detail !== 'string') return null;
  return { type, code: isErrorCode(code) ? code : 'INTERNAL', detail };
}
