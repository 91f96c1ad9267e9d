import { type Architecture, CallList, Place } from './call-list.js';
import type { Bound, StartRequest } from './messages.js';

/** The calls by which the launcher starts a program and waits for it, as a list; see `launcher-program.ts`. */

/** The descriptors of the launcher beside its own three: those of the program's stdout and stderr, to read and to write, and a file. */
const [OUT_READ, OUT_WRITE, ERR_READ, ERR_WRITE, FILE] = [3, 4, 5, 6, 7];
/** Those from which the host reads. */
export const STDOUT_OF_PROGRAM = OUT_READ;
export const STDERR_OF_PROGRAM = ERR_READ;
/** The descriptor as which what stands around a program reads the filter of calls. */
const FILTER = 3;

const [CLOSE_ON_EXEC, READ_ONLY, WRITE_ONLY] = [0o2000000, 0, 1];
/** `vfork`: the child goes on in the same memory, and the launcher when it has become the program or ended. */
const VFORK = 0x0000_4000 | 0x0000_0100 | 17;
const [PR_SET_PDEATHSIG, PR_SET_DUMPABLE, SIGKILL] = [1, 4, 9];
const ANY_CHILD = 0xffff_ffff;
/** The kernel's numbers of limits. */
const RESOURCES: Readonly<Record<Bound['name'], number>> = { cpu: 0, fsize: 1, nproc: 6, nofile: 7 };

/** The most calls that can fail on the way to the program. */
const RESULTS = 24;
/** What the launcher answers when it has started the program, or has failed to: the process, and the result of each call. */
export const STARTED_BYTES = 8 * (1 + RESULTS);
/** What it answers when the program has ended: its status. */
export const ENDED_BYTES = 8;

/** What becomes of a start, as the launcher tells it. */
export type Started = { readonly pid: number } | { readonly errno: number };

/** The message that makes the launcher start a program. */
export function programCalls(request: StartRequest, architecture: Architecture): Buffer {
  const { argv, env, cwd, stdin, filter, tree, bounds, cgroup } = request;
  const list = new CallList(architecture);
  const answer = list.room(1 + RESULTS);
  let kept = 0;
  /** A result that is told to the host; an error ends the start. */
  const vital = (ifNegative: Place) => {
    kept += 1;
    return { keepAt: answer + 8 * kept, ifNegative };
  };
  const [child, told, refused] = [new Place(), new Place(), new Place()];

  // A launcher whose host was killed must not start what it has still been told.
  list.call('prctl', [PR_SET_PDEATHSIG, SIGKILL]);
  // What is left of the program before.
  list.call('close', [OUT_READ]);
  list.call('close', [ERR_READ]);
  list.call('pipe2', [list.room(1), CLOSE_ON_EXEC], vital(told));
  list.call('pipe2', [list.room(1), CLOSE_ON_EXEC], vital(told));
  list.call('clone', [VFORK], { keepAt: answer, ifNegative: told, ifZero: child });
  // The child had the same memory and has changed its user, after which the kernel lets nobody look into `/proc` of either.
  list.call('prctl', [PR_SET_DUMPABLE, 1]);
  list.reach(told);
  list.call('close', [OUT_WRITE]);
  list.call('close', [ERR_WRITE]);
  list.call('write', [1, answer, STARTED_BYTES]);
  const status = list.room(1);
  list.call('wait4', [ANY_CHILD, status]);
  list.call('write', [1, status, ENDED_BYTES]);
  list.end();

  list.reach(child);
  const must = (...[name, args]: [Parameters<CallList['call']>[0], readonly number[]]) =>
    list.call(name, args, vital(refused));
  if (cgroup !== null) {
    // First of all: what it uses from here on counts. The kernel takes 0 for the one that writes.
    must('openat', [0, list.text(`${cgroup}/cgroup.procs`), WRITE_ONLY | CLOSE_ON_EXEC]);
    must('write', [FILE, list.text('0'), 1]);
    list.call('close', [FILE]);
  }
  // A session of its own: signals from terminals do not reach it, and its group can be signalled as a whole.
  must('setsid', []);
  must('openat', [0, list.text(stdin), READ_ONLY | CLOSE_ON_EXEC]);
  must('dup3', [FILE, 0, 0]);
  list.call('close', [FILE]);
  must('dup3', [OUT_WRITE, 1, 0]);
  must('dup3', [ERR_WRITE, 2, 0]);
  if (filter !== null) {
    must('openat', [0, list.text(filter), READ_ONLY | CLOSE_ON_EXEC]);
    must('dup3', [FILE, FILTER, 0]);
  }
  for (const { name, soft, hard } of bounds) must('prlimit64', [0, RESOURCES[name], list.numbers([soft, hard])]);
  must('chdir', [list.text(cwd)]);
  if (tree.kind === 'user') {
    must('setgroups', [0]);
    must('setresgid', [tree.uid, tree.uid, tree.uid]);
    must('setresuid', [tree.uid, tree.uid, tree.uid]);
  }
  // With the launcher, which would have waited for it; a change of the user takes this back.
  must('prctl', [PR_SET_PDEATHSIG, SIGKILL]);
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  must('execve', [list.text(argv[0]), list.texts(argv), list.texts(variables)]);
  list.reach(refused);
  list.call('exit_group', [127]);
  return list.message();
}

/** What an answer of `STARTED_BYTES` says. */
export function readStarted(answer: Buffer): Started {
  for (let at = 0; at < STARTED_BYTES; at += 8) {
    const result = answer.readInt32LE(at);
    if (result < 0) return { errno: -result };
  }
  return { pid: answer.readInt32LE(0) };
}

/** How a program ended. */
export interface ExitStatus {
  readonly exitCode: number | null;
  /** The number of the signal that ended it. */
  readonly signal: number | null;
}

/** What an answer of `ENDED_BYTES` says; see wait(2). */
export function readEnded(answer: Buffer): ExitStatus {
  const status = answer.readInt32LE(0);
  const signal = status & 0x7f;
  return signal === 0 ? { exitCode: (status >> 8) & 0xff, signal: null } : { exitCode: null, signal };
}
