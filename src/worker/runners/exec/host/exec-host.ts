import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { LauncherStarter } from './launcher.js';
import type { FromHost, ToHost } from './messages.js';
import { Program } from './program.js';
import { SpawnStarter } from './spawn-starter.js';
import type { Starter } from './starter.js';

/**
 * The exec host of a worker: a small process that alone starts programs, watches them and ends them. It is in a PID namespace
 * of its own where there can be one, and ends when its worker does, because its stdin ends then; the kernel ends everything
 * below it. It has one thread: from several, a file that one has just written may still be open for writing in what another starts.
 */

/** How often it is looked whether the worker is stopped. */
const LOOK_MS = 500;
/** How long it takes at most to end everything when the worker is gone. */
const LEAVE_MS = 2_000;
/** The descriptor that the worker gives: its own state, which `/proc` of the host's namespace does not show. */
const GIVEN_STATE = 3;
/** Close-on-exec, among the flags of a descriptor in `/proc`. */
const CLOSE_ON_EXEC = 0o2000000;

const programs = new Map<string, Program>();
/** The shortest lease of the programs that run. */
let leaseMs = Number.POSITIVE_INFINITY;
let stoppedSince: number | null = null;
let isLeaving = false;

const workerStat = openState();
closeInherited();
const starter = starterOf(process.argv[2]);
process.stdin.setEncoding('utf8').on('data', listener());
process.stdin.on('end', () => void leave());
process.stdin.on('error', () => void leave());
process.stdout.on('error', () => void leave());
// These are for the worker, which decides what becomes of its programs.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
if (workerStat !== null) lookLater(workerStat);
tell({ type: 'ready', namespace: namespace(), pid: process.pid });

/** By the launcher whose file the worker gives, if there is one. Without one, what it ran could not be waited for. */
function starterOf(launcher: string | undefined): Starter {
  const { arch } = process;
  const isKnown = arch === 'x64' || arch === 'arm64';
  if (launcher === undefined || !isKnown) return new SpawnStarter();
  return new LauncherStarter(launcher, arch, () => void leave());
}

/** Opened anew, because Node's own descriptors are closed in programs, and the one that was given is not. */
function openState(): number | null {
  try {
    return openSync(`/proc/self/fd/${GIVEN_STATE}`, 'r');
  } catch {
    return null;
  }
}

/** Descriptors that the worker inherited from whoever started it would reach every program. */
function closeInherited(): void {
  for (const descriptor of openDescriptors()) {
    if (descriptor > 2 && !isClosedOnExec(descriptor)) closeSync(descriptor);
  }
}

function openDescriptors(): number[] {
  try {
    return readdirSync('/proc/self/fd').map(Number);
  } catch {
    return [];
  }
}

/** What cannot be looked at is gone: it was the list itself. */
function isClosedOnExec(descriptor: number): boolean {
  try {
    const text = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8');
    const flags = /^flags:\s+([0-7]+)$/m.exec(text)?.[1] ?? '';
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
  } catch {
    return true;
  }
}

function listener(): (piece: string) => void {
  let text = '';
  return (piece) => {
    const lines = (text + piece).split('\n');
    text = lines.pop()!;
    for (const line of lines) hear(JSON.parse(line) as ToHost);
  };
}

function hear(message: ToHost): void {
  if (message.type === 'stop') {
    programs.get(message.id)?.stop('stop', message.graceMs);
    return;
  }
  const { id } = message;
  const program = new Program(message, starter, tell, () => programs.delete(id));
  programs.set(id, program);
  leaseMs = programs.size === 1 ? message.leaseMs : Math.min(leaseMs, message.leaseMs);
  program.start();
}

/**
 * The worker is gone: whoever could be told, and whoever has claimed the attempts. With this process the kernel ends everything
 * below it; where there is no namespace for that, it is done here.
 */
async function leave(): Promise<void> {
  isLeaving = true;
  const enough = new Promise((resolve) => setTimeout(resolve, LEAVE_MS));
  const ends = Array.from(programs.values(), (program) => program.endNow());
  await Promise.race([Promise.all(ends), enough]);
  process.exit(0);
}

function tell(message: FromHost): void {
  if (isLeaving) return;
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function namespace(): string | null {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return null;
  }
}

/** The letter of the worker's state; of one that cannot be asked, that it is gone, which the end of stdin tells, too. */
function stateIn(descriptor: number): string {
  try {
    const bytes = Buffer.alloc(1_024);
    const text = bytes.toString('latin1', 0, readSync(descriptor, bytes, 0, bytes.length, 0));
    return text[text.lastIndexOf(')') + 2] ?? 'X';
  } catch {
    return 'X';
  }
}

function lookLater(descriptor: number): void {
  setTimeout(() => {
    look(stateIn(descriptor));
    lookLater(descriptor);
  }, LOOK_MS).unref();
}

/**
 * A stopped worker sends no heartbeats. Its programs end before it can be declared dead, because then they may start elsewhere;
 * the other half of its lease may have gone by between its last heartbeat and the moment at which it was stopped.
 */
function look(state: string): void {
  const now = performance.now();
  stoppedSince = state === 'T' || state === 't' ? (stoppedSince ?? now) : null;
  if (stoppedSince === null || now - stoppedSince < leaseMs / 2 - LOOK_MS) return;
  for (const program of programs.values()) program.stop('worker-stopped', 0);
}
