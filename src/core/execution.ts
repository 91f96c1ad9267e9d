import type { ExecLimits } from './job.js';

/** How an attempt ran a program: what stood around it, and how it ended. */

/** The most bytes of it as JSON. */
export const MAX_EXECUTION_BYTES = 16 * 1024;

/** A limit that was asked for, and what was done about it: kept by the kernel, measured now and then, or nothing. */
export interface LimitReport {
  readonly value: number | string;
  readonly how: 'enforced' | 'approximated' | 'absent';
}

/** What kept a program apart: nothing, or the tool that did. */
export const ISOLATION_LEVELS = ['none', 'bubblewrap', 'namespaces'] as const;
/** What kept a program apart. */
export type IsolationLevel = (typeof ISOLATION_LEVELS)[number];

/** How an attempt ran a program. */
export interface Execution {
  readonly isolation: IsolationLevel;
  /** Why there was none, where it was wanted. */
  readonly notIsolated?: string;
  readonly limits: { readonly [N in keyof ExecLimits]?: LimitReport };
  readonly exitCode?: number;
  readonly signal?: string;
  readonly outOfMemory?: boolean;
  /** The end of its stdout. */
  readonly stdout?: string;
  /** The end of its stderr. */
  readonly stderr?: string;
  /** Whether lines were left out of the log of the job. */
  readonly cut?: boolean;
}

/** The execution within its bound: what was printed is shortened from its beginning, because its end tells more. */
export function withinBounds(execution: Execution): Execution {
  let fitting = execution;
  for (let left = 4_096; !fits(fitting); left = Math.floor(left / 2)) {
    const { stdout, stderr, ...rest } = fitting;
    if (left === 0) return fits(rest) ? rest : { isolation: rest.isolation, limits: {} };
    fitting = {
      ...rest,
      ...(stdout !== undefined && { stdout: stdout.slice(-left) }),
      ...(stderr !== undefined && { stderr: stderr.slice(-left) }),
    };
  }
  return fitting;
}

function fits(execution: Execution): boolean {
  return Buffer.byteLength(JSON.stringify(execution)) <= MAX_EXECUTION_BYTES;
}
