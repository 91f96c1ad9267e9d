import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { ExecError } from './exec-error.js';
import type { EndedMessage, FromHost, StartRequest, ToHost, Tree } from './host/messages.js';
import { endTree } from './host/process-tree.js';

/** When the program runs from its sources, as in tests, the host runs the compiled file: it is started by Node alone. */
const ENTRY = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts')
      ? '../../../../dist/worker/runners/exec/host/exec-host.js'
      : './host/exec-host.js',
    import.meta.url,
  ),
);

/** Starting a program takes the longer the more memory the host has, because all of its pages are marked for it. */
const NODE = ['--max-old-space-size=64', '--max-semi-space-size=1', '--no-warnings'];
/**
 * In a PID namespace of its own; the shell is its first process and reaps what is left over. In its `/proc`, a program sees the
 * processes of its own user alone: the words of others would tell what other tenants run. Without root, all have the same user.
 */
const AS_INIT = ['/bin/sh', '-c', 'mount -o remount,hidepid=2 /proc 2>/dev/null; "$@"; exit $?', 'sh'];
/** How long a host may take until it is up. */
const START_PATIENCE_MS = 15_000;
/** How long after the grace of a program its end may take to be told; longer than the host waits for what it has killed. */
const STOP_PATIENCE_MS = 15_000;

/** Whoever is told about a program that a host runs. */
export interface ProgramListener {
  onStarted?(pid: number): void;
  /** `continues` holds the indices of those that are no whole lines. */
  onLines(stream: 'stdout' | 'stderr', lines: readonly string[], continues: readonly number[]): void;
  /** The program and all that it started are gone. */
  onEnded(end: EndedMessage): void;
  /** It was not started, or nobody knows how it ended, because its host has ended. */
  onFailed(error: ExecError): void;
}

/** A program that a host runs. */
interface RunningProgram {
  readonly listener: ProgramListener;
  readonly tree: Tree;
  /** Its first process, as the host's namespace counts; null before the host has told it. */
  pid: number | null;
  /** Until when a host that was told to end it must have done so. */
  patience?: NodeJS.Timeout;
}

/** What a host is started with around it. */
export interface HostWrapping {
  /** The words before the command that is to be in a PID namespace of its own; null where there can be none. */
  readonly namespace: readonly string[] | null;
  /** The file of the launcher; null if the host starts programs by itself. */
  readonly launcher: string | null;
  /** Words before everything. */
  readonly around: readonly string[];
}

/** What is known of a host that runs. */
export interface HostFacts {
  /** The process that was started here; with a namespace, the one that waits for the namespace's first process. */
  readonly pid: number;
  readonly namespace: string | null;
}

/** The exec host of a worker, in its process. */
export class ExecHostProcess {
  readonly #child: ChildProcess;
  readonly #programs = new Map<string, RunningProgram>();
  readonly #hasNamespace: boolean;
  readonly #onEnd: () => void;
  readonly #up: Promise<HostFacts>;
  #settleUp: { resolve(facts: HostFacts): void; reject(error: Error): void } | null = null;
  #stderr = '';
  #hasEnded = false;

  /** `onEnd` is called once, when the process has ended. */
  constructor(
    { namespace, launcher, around }: HostWrapping,
    onEnd: () => void,
    private readonly stopPatienceMs = STOP_PATIENCE_MS,
  ) {
    this.#onEnd = onEnd;
    this.#hasNamespace = namespace !== null;
    const command = [process.execPath, ...NODE, ENTRY, ...(launcher === null ? [] : [launcher])];
    const inner = namespace === null ? command : [...namespace, ...AS_INIT, ...command];
    const [file, ...args] = [...around, ...inner];
    const state = openOwnState();
    // A session of its own: what is typed at the worker's terminal is for the worker.
    this.#child = spawn(file!, args, {
      detached: true,
      cwd: '/',
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
      stdio: ['pipe', 'pipe', 'pipe', state ?? 'ignore'],
    });
    if (state !== null) closeSync(state);
    this.#up = new Promise((resolve, reject) => {
      this.#settleUp = { resolve, reject };
    });
    this.#listen();
  }

  /** Resolves when the host is up; throws if it cannot be started so. */
  ready(): Promise<HostFacts> {
    return this.#up;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Programs that were started and have not ended. */
  get running(): number {
    return this.#programs.size;
  }

  start(request: StartRequest, listener: ProgramListener): void {
    if (this.#hasEnded) {
      listener.onFailed(hostLost());
      return;
    }
    this.#programs.set(request.id, { listener, tree: request.tree, pid: null });
    (this.#child.stdout as Socket).ref();
    this.#say(request);
  }

  /** A host that hangs ends nothing: it is ended itself, and everything that it runs. */
  stop(id: string, graceMs: number): void {
    const program = this.#programs.get(id);
    if (!program) return;
    this.#say({ type: 'stop', id, graceMs });
    clearTimeout(program.patience);
    program.patience = setTimeout(() => this.#child.kill('SIGKILL'), graceMs + this.stopPatienceMs);
  }

  /** Ends the host and everything that it runs; resolves when it is gone. */
  async close(): Promise<void> {
    if (this.#hasEnded) return;
    const gone = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    this.#child.stdin!.end();
    const enough = setTimeout(() => this.#child.kill('SIGKILL'), 2_000);
    await gone;
    clearTimeout(enough);
  }

  #say(message: ToHost): void {
    this.#child.stdin!.write(`${JSON.stringify(message)}\n`);
  }

  #listen(): void {
    const child = this.#child;
    for (const stream of [child.stdin!, child.stdout!, child.stderr!]) stream.on('error', () => undefined);
    let text = '';
    child.stdout!.setEncoding('utf8').on('data', (piece: string) => {
      const lines = (text + piece).split('\n');
      text = lines.pop()!;
      for (const line of lines) this.#hear(JSON.parse(line) as FromHost);
    });
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
      this.#stderr = (this.#stderr + piece).slice(-2_000);
    });
    const patience = setTimeout(() => child.kill('SIGKILL'), START_PATIENCE_MS);
    void this.#up.then(
      () => clearTimeout(patience),
      () => clearTimeout(patience),
    );
    child.on('error', (error) => this.#ended(error.message));
    // Not before all that it said was read.
    child.on('close', (code, signal) => this.#ended(this.#stderr.trim() || `it ended (${signal ?? code})`));
    // Neither the process nor its pipes keep a program alive that has nothing else to do; what it runs does.
    child.unref();
    for (const stream of [child.stdin!, child.stdout!, child.stderr!]) (stream as Socket).unref();
  }

  #hear(message: FromHost): void {
    if (message.type === 'ready') {
      this.#settleUp?.resolve({ pid: this.#child.pid!, namespace: message.namespace });
      return;
    }
    const program = this.#programs.get(message.id);
    if (!program) return;
    const { listener } = program;
    if (message.type === 'started') {
      program.pid = message.pid;
      listener.onStarted?.(message.pid);
    } else if (message.type === 'lines') {
      listener.onLines(message.stream, message.lines, message.continues);
    } else {
      this.#programs.delete(message.id);
      clearTimeout(program.patience);
      if (this.#programs.size === 0) (this.#child.stdout as Socket).unref();
      if (message.type === 'ended') listener.onEnded(message);
      else listener.onFailed(notStarted(message));
    }
  }

  #ended(why: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#settleUp?.reject(new ExecError('HOST_LOST', `The exec host could not be started: ${why}`));
    for (const program of this.#programs.values()) void this.#lost(program);
    this.#programs.clear();
    this.#onEnd();
  }

  /**
   * The kernel ends the programs of a host that was killed only if it had a namespace. Their attempts fail when they are gone,
   * and not before: they may start elsewhere then.
   */
  async #lost({ listener, tree, pid, patience }: RunningProgram): Promise<void> {
    clearTimeout(patience);
    if (tree.kind === 'user') await endTree(tree, pid ?? 0);
    // In a namespace of the host, the number is that of another process here.
    else if (!this.#hasNamespace && pid !== null) await endTree(tree, pid);
    listener.onFailed(hostLost());
  }
}

/** From which the host learns whether this process is stopped; null where there is no `/proc`. */
function openOwnState(): number | null {
  try {
    return openSync(`/proc/${process.pid}/stat`, 'r');
  } catch {
    return null;
  }
}

function hostLost(): ExecError {
  return new ExecError('HOST_LOST', 'The exec host of the worker has ended, and the program with it.');
}

function notStarted({ code, message }: { readonly code: string; readonly message: string }): ExecError {
  return new ExecError('NOT_RUNNABLE', `The program could not be started (${code}): ${message}`);
}
