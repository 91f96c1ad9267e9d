import type { Readable } from 'node:stream';
import { endGroup, makeGroup, oomKillsIn } from './control-group.js';
import type { EndedBy, FromHost, StartRequest } from './messages.js';
import { type LineBudget, OutputStream } from './output.js';
import { endTree, processesOf, terminate } from './process-tree.js';
import type { StartedProcess, Starter } from './starter.js';
import { diskBytes, memoryBytes } from './usage.js';

/** How long pipes stay open after everything that could write to them was ended. */
const CLOSE_PATIENCE_MS = 1_000;
/** How often memory and disk of a program are measured that has a bound for them. */
const WATCH_MS = 200;

/** One program: started, watched, ended with everything that it started. */
export class Program {
  readonly #request: StartRequest;
  readonly #starter: Starter;
  readonly #tell: (message: FromHost) => void;
  readonly #gone: () => void;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;
  readonly #budget: LineBudget;
  #process: StartedProcess | null = null;
  /** A stop that came before it was known to have started. */
  #earlyStop: { readonly by: EndedBy; readonly graceMs: number } | null = null;
  /** Called when it has started, or has failed to. */
  #onStarted: () => void = () => undefined;
  #by: EndedBy | null = null;
  #deadline: NodeJS.Timeout | undefined;
  #watching: NodeJS.Timeout | undefined;
  #isEnding = false;

  /** `gone` is called when nothing is left of it. */
  constructor(request: StartRequest, starter: Starter, tell: (message: FromHost) => void, gone: () => void) {
    this.#request = request;
    this.#starter = starter;
    this.#tell = tell;
    this.#gone = gone;
    const { id, outputBytes, resultBytes, tailBytes } = request;
    this.#budget = { bytes: outputBytes, isCut: false };
    const stream = (name: 'stdout' | 'stderr', headBytes: number) =>
      new OutputStream({
        ...{ headBytes, tailBytes, budget: this.#budget },
        onLines: (lines, continues) => tell({ type: 'lines', id, stream: name, lines, continues }),
      });
    this.#stdout = stream('stdout', resultBytes);
    this.#stderr = stream('stderr', 0);
  }

  start(): void {
    const { group } = this.#request;
    try {
      if (group !== null) makeGroup(group);
    } catch (thrown) {
      const { code = 'UNKNOWN', message } = thrown as NodeJS.ErrnoException;
      void this.#failed(code, `its control group cannot be made: ${message}`);
      return;
    }
    this.#starter.start(this.#request, {
      onStarted: (process) => this.#started(process),
      onFailed: (code, message) => void this.#failed(code, message),
      onExited: (exitCode, signal) => void this.#exited(exitCode, signal),
    });
  }

  #started(process: StartedProcess): void {
    const { id, timeoutMs, graceMs } = this.#request;
    const { pid, stdout, stderr } = process;
    this.#process = process;
    this.#onStarted();
    // Read for as long as anything comes: a pause would hang the program, and an end would kill it.
    stdout.on('data', (piece: Buffer) => this.#stdout.add(piece));
    stderr.on('data', (piece: Buffer) => this.#stderr.add(piece));
    for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
    this.#tell({ type: 'started', id, pid });
    const early = this.#earlyStop;
    if (early) this.stop(early.by, early.graceMs);
    else this.#deadline = setTimeout(() => this.stop('timeout', graceMs), timeoutMs);
    this.#watchLater();
  }

  /** Asks it to end, and ends it after the grace. Only the first call has an effect, unless a later one gives less time. */
  stop(by: EndedBy, graceMs: number): void {
    if (this.#isEnding) return;
    const pid = this.#process?.pid;
    if (pid === undefined) {
      this.#earlyStop = { by: this.#earlyStop?.by ?? by, graceMs };
      return;
    }
    const { tree, isWrapped } = this.#request;
    if (this.#by === null && graceMs > 0) terminate(tree, pid, isWrapped);
    this.#by ??= by;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => void endTree(tree, pid), graceMs);
  }

  /** Ends it without telling anybody. */
  async endNow(): Promise<void> {
    if (this.#process === null) {
      this.stop('stop', 0);
      await new Promise<void>((resolve) => {
        this.#onStarted = resolve;
      });
    }
    if (this.#process !== null) await endTree(this.#request.tree, this.#process.pid);
  }

  async #exited(exitCode: number | null, signal: string | null): Promise<void> {
    this.#isEnding = true;
    clearTimeout(this.#deadline);
    clearTimeout(this.#watching);
    const { id, tree, group } = this.#request;
    const { pid, stdout, stderr } = this.#process!;
    if (group !== null && oomKillsIn(group.path) > 0) this.#by ??= 'memory';
    const { hadProcesses, isWhole: isTreeGone } = await endTree(tree, pid);
    const isGroupGone = group === null || (await endGroup(group.path));
    const isWhole = isTreeGone && isGroupGone;
    const [isRemoved] = await Promise.all([this.#process!.removeFolder(), closed([stdout, stderr])]);
    this.#stdout.end();
    this.#stderr.end();
    this.#tell({
      ...{ type: 'ended', id, exitCode, signal, by: this.#by, hadLeftovers: hadProcesses, isWhole },
      stdout: this.#stdout.text,
      stdoutBytes: this.#stdout.bytes,
      stdoutTail: this.#stdout.tail,
      stderrTail: this.#stderr.tail,
      isTailCut: { stdout: this.#stdout.isTailCut, stderr: this.#stderr.isTailCut },
      isCut: this.#budget.isCut,
      hasFolder: !isRemoved,
    });
    this.#gone();
  }

  async #failed(code: string, message: string): Promise<void> {
    const { group } = this.#request;
    this.#isEnding = true;
    if (group !== null) await endGroup(group.path);
    this.#onStarted();
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
    const { memory, disk, folder, tree } = this.#request;
    const pid = this.#process!.pid;
    if (memory !== null && memoryBytes(processesOf(tree, pid)) > memory) this.stop('memory', 0);
    else if (disk !== null && diskBytes(folder.path, disk) > disk) this.stop('disk', 0);
  }
}

/** Resolves when pipes are closed; a process that was not found may hold them for ever. */
async function closed(pipes: readonly Readable[]): Promise<void> {
  const open = pipes.filter((pipe) => !pipe.closed);
  if (open.length === 0) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      for (const pipe of open) pipe.destroy();
      resolve();
    }, CLOSE_PATIENCE_MS);
    let left = open.length;
    for (const pipe of open) {
      pipe.once('close', () => {
        left -= 1;
        if (left > 0) return;
        clearTimeout(timer);
        resolve();
      });
    }
  });
}
