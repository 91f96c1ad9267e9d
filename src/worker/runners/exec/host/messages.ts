import type { GroupParts } from './control-group.js';
import type { FolderParts } from './job-folder.js';

/**
 * What a worker and its exec host say to each other: one JSON document per line, on the host's stdin and stdout. Types only, so
 * that neither side loads what the other needs.
 */

/** How the processes of a program are found, so that all of them can be ended. */
export type Tree =
  /** They belong to a user that nobody else has. */
  | { readonly kind: 'user'; readonly uid: number }
  /** They are in a PID namespace of their own; its first process is the child that the host starts, or a child of that. */
  | { readonly kind: 'namespace' }
  /** They are in the process group of the first one, unless they have left it. */
  | { readonly kind: 'group' };

/** A limit of each process, which the kernel keeps. */
export interface Bound {
  readonly name: 'nofile' | 'cpu' | 'fsize' | 'nproc';
  readonly soft: number;
  readonly hard: number;
}

/** One program to run. */
export interface StartRequest {
  readonly type: 'start';
  readonly id: string;
  /** What is started, with everything around the program: the first word is a path. */
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** The folder that is made for it, in which it begins; it reads the payload as its stdin. */
  readonly folder: FolderParts;
  /** The file that whatever stands around the program reads as its descriptor 3; null for none. */
  readonly filter: string | null;
  readonly tree: Tree;
  readonly bounds: readonly Bound[];
  /** The tool that sets them where there is no launcher; null if there is none. */
  readonly prlimit: string | null;
  /** The control group that is made for it, which needs a launcher; null for none. */
  readonly group: GroupParts | null;
  /** Whether something stands around the program that must not get the TERM: its first child is signalled instead. */
  readonly isWrapped: boolean;
  /** Milliseconds after which the host ends the program by itself, if its worker does not. */
  readonly timeoutMs: number;
  readonly graceMs: number;
  /** The most bytes of stdout that are kept for the result. */
  readonly resultBytes: number;
  /** The most bytes of both streams that are passed on as lines. */
  readonly outputBytes: number;
  /** The bytes of both streams that are kept from their ends, for people. */
  readonly tailBytes: number;
  /** Bytes of memory, of all processes together, above which the program is ended; null for no bound. */
  readonly memory: number | null;
  /** Bytes in the folder above which the program is ended; null for no bound. */
  readonly disk: number | null;
  /** How long the worker may be stopped before its programs are ended, because they may run elsewhere by then. */
  readonly leaseMs: number;
}

export type ToHost =
  | StartRequest
  /** TERM, and KILL after the grace. */
  | { readonly type: 'stop'; readonly id: string; readonly graceMs: number };

/** Why the host ended a program. */
export type EndedBy = 'timeout' | 'stop' | 'memory' | 'disk' | 'worker-stopped';

/** The end of a program. All of its processes are gone. */
export interface EndedMessage {
  readonly type: 'ended';
  readonly id: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The first reason, if the host had one. */
  readonly by: EndedBy | null;
  /** Whether processes were left that had to be ended. */
  readonly hadLeftovers: boolean;
  /** Whether all of its processes are known to be gone. */
  readonly isWhole: boolean;
  /** Its stdout; null if it is larger than what is kept, or no UTF-8. */
  readonly stdout: string | null;
  readonly stdoutBytes: number;
  readonly stdoutTail: string;
  readonly stderrTail: string;
  /** Whether these are only the ends. */
  readonly isTailCut: { readonly stdout: boolean; readonly stderr: boolean };
  /** Whether lines were left out. */
  readonly isCut: boolean;
  /** Whether something is left in its folder. */
  readonly hasFolder: boolean;
}

export type FromHost =
  /** The host is up. */
  | { readonly type: 'ready'; readonly namespace: string | null; readonly pid: number }
  | { readonly type: 'started'; readonly id: string; readonly pid: number }
  | {
      readonly type: 'lines';
      readonly id: string;
      readonly stream: 'stdout' | 'stderr';
      readonly lines: readonly string[];
      /** The indices of those that are no whole lines: the next one of the stream belongs to them. */
      readonly continues: readonly number[];
    }
  /** It could not be started. */
  | { readonly type: 'failed'; readonly id: string; readonly code: string; readonly message: string }
  | EndedMessage;
