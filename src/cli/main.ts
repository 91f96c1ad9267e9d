import { ONE_ORDER_MS } from '../host/processes.js';
import type { Cli } from './cli.js';
import { EXIT_INTERRUPTED } from './failure.js';
import { runCli } from './program.js';
import { findSupervisor } from './supervised-process.js';

/** The entry of the program: runs the command line in this process. */

/** How long handles that are still open may delay the exit. */
const LINGER_MS = 1_000;

const interrupted = new AbortController();
const interruptedAgain = new AbortController();
const readerGone = new AbortController();

let interruptedAt = Number.NEGATIVE_INFINITY;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (performance.now() - interruptedAt < ONE_ORDER_MS) return;
    if (interrupted.signal.aborted) {
      interruptedAgain.abort();
      process.exit(EXIT_INTERRUPTED);
    }
    interruptedAt = performance.now();
    interrupted.abort();
  });
}
// Without a listener a closed pipe would end the process with a stack trace.
process.stdout.on('error', () => readerGone.abort());
process.stderr.on('error', () => undefined);

const cli: Cli = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  folder: process.cwd(),
  interrupted: interrupted.signal,
  interruptedAgain: interruptedAgain.signal,
  readerGone: readerGone.signal,
  supervisor: findSupervisor(process),
  now: Date.now,
};

/** Lets the process exit when its output is written; the timer does not keep it alive. */
function exit(code: number): void {
  process.exitCode = code;
  // The channel to the supervisor would keep the process alive.
  process.channel?.unref();
  setTimeout(() => process.exit(code), LINGER_MS).unref();
}

exit(await runCli(process.argv.slice(2), cli));
