import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { EndedBy, FromHost, StartRequest } from './messages.js';
import { type LineBudget, OutputStream } from './output.js';
import { endTree, processesOf, terminate } from './process-tree.js';
import { diskBytes, memoryBytes } from './usage.js';

/** The bytes of both streams that are kept from their ends, for people. */
const TAIL_BYTES = 4 * 1024;
/** How long pipes stay open after everything that could write to them was ended. */
const CLOSE_PATIENCE_MS = 1_000;
/** How often memory and disk of a program are measured that has a bound for them. */
const WATCH_MS = 200;

/** One program: started, watched, ended with everything that it started. */
export class Program {
  readonly #request: StartRequest;
  readonly #tell: (message: FromHost) => void;
  readonly #gone: () => void;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;
  readonly #budget: LineBudget;
  #child: ChildProcess | null = null;
  #by: EndedBy | null = null;
  #deadline: NodeJS.Timeout | undefined;
  #watching: NodeJS.Timeout | undefined;
  #isEnding = false;

  /** `gone` is called when nothing is left of it. */
  constructor(request: StartRequest, tell: (message: FromHost) => void, gone: () => void) {
    this.#request = request;
    this.#tell = tell;
    this.#gone = gone;
    const { id, outputBytes, resultBytes } = request;
    this.#budget = { bytes: outputBytes, isCut: false };
    const stream = (name: 'stdout' | 'stderr', headBytes: number) =>
      new OutputStream({
        ...{ headBytes, tailBytes: TAIL_BYTES, budget: this.#budget },
        onLines: (lines) => tell({ type: 'lines', id, stream: name, lines }),
      });
    this.#stdout = stream('stdout', resultBytes);
    this.#stderr = stream('stderr', 0);
  }

  start(): void {
    const { id, argv, env, cwd, tree, timeoutMs, graceMs, stdin, filter } = this.#request;
    const [file, ...args] = argv;
    const open: number[] = [];
    try {
      for (const path of [stdin, ...(filter === null ? [] : [filter])]) open.push(openSync(path, 'r'));
      const user = tree.kind === 'user' ? { uid: tree.uid, gid: tree.uid } : {};
      // A session of its own: signals from terminals do not reach it, and its group can be signalled as a whole.
      const stdio: StdioOptions = [open[0]!, 'pipe', 'pipe', ...open.slice(1)];
      this.#child = spawn(file, args, { cwd, env, detached: true, stdio, ...user });
    } catch (thrown) {
      this.#failed(thrown as NodeJS.ErrnoException);
      return;
    } finally {
      for (const descriptor of open) closeSync(descriptor);
    }
    const child = this.#child;
    child.on('error', (error) => this.#failed(error));
    if (child.pid === undefined) return;
    // Read for as long as anything comes: a pause would hang the program, and an end would kill it.
    child.stdout!.on('data', (piece: Buffer) => this.#stdout.add(piece));
    child.stderr!.on('data', (piece: Buffer) => this.#stderr.add(piece));
    for (const stream of [child.stdout!, child.stderr!]) stream.on('error', () => undefined);
    child.on('exit', (code, signal) => void this.#exited(child, code, signal));
    this.#tell({ type: 'started', id, pid: child.pid });
    this.#deadline = setTimeout(() => this.stop('timeout', graceMs), timeoutMs);
    this.#watchLater();
  }

  /** Asks it to end, and ends it after the grace. Only the first call has an effect, unless a later one gives less time. */
  stop(by: EndedBy, graceMs: number): void {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#isEnding) return;
    const { tree, isWrapped } = this.#request;
    if (this.#by === null && graceMs > 0) terminate(tree, pid, isWrapped);
    this.#by ??= by;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => void endTree(tree, pid), graceMs);
  }

  /** Ends it without telling anybody. */
  async endNow(): Promise<void> {
    const pid = this.#child?.pid;
    if (pid !== undefined) await endTree(this.#request.tree, pid);
  }

  async #exited(child: ChildProcess, exitCode: number | null, signal: NodeJS.Signals | null): Promise<void> {
    this.#isEnding = true;
    clearTimeout(this.#deadline);
    clearTimeout(this.#watching);
    const { id, tree } = this.#request;
    const { hadProcesses, isWhole } = await endTree(tree, child.pid!);
    await closed(child);
    this.#stdout.end();
    this.#stderr.end();
    this.#tell({
      ...{ type: 'ended', id, exitCode, signal, by: this.#by, hadLeftovers: hadProcesses, isWhole },
      stdout: this.#stdout.text,
      stdoutBytes: this.#stdout.bytes,
      stdoutTail: this.#stdout.tail,
      stderrTail: this.#stderr.tail,
      isCut: this.#budget.isCut,
    });
    this.#gone();
  }

  #failed({ code = 'UNKNOWN', message }: NodeJS.ErrnoException): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#tell({ type: 'failed', id: this.#request.id, code, message });
    this.#gone();
  }

  #watchLater(): void {
    const { memory, disk } = this.#request;
    if (memory === null && disk === null) return;
    this.#watching = setTimeout(() => {
      this.#watch();
      if (!this.#isEnding) this.#watchLater();
    }, WATCH_MS);
  }

  #watch(): void {
    const { memory, disk, cwd, tree } = this.#request;
    const pid = this.#child!.pid!;
    if (memory !== null && memoryBytes(processesOf(tree, pid)) > memory) this.stop('memory', 0);
    else if (disk !== null && diskBytes(cwd, disk) > disk) this.stop('disk', 0);
  }
}

/** Resolves when its pipes are closed; a process that was not found may hold them for ever. */
async function closed(child: ChildProcess): Promise<void> {
  const pipes = [child.stdout!, child.stderr!];
  if (pipes.every((pipe) => pipe.closed)) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      for (const pipe of pipes) pipe.destroy();
      resolve();
    }, CLOSE_PATIENCE_MS);
    child.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
