import { constants } from 'node:os';
import { join } from 'node:path';
import { type Architecture, CallList, type CallName, Place } from './call-list.js';
import { type FolderParts, filesOf, OUTPUT_FOLDER, PAYLOAD_FILE } from './job-folder.js';
import type { Bound, StartRequest } from './messages.js';

/** What the launcher does for a program, as lists of calls; see `launcher-program.ts`. */

/** The descriptors of the launcher beside its own three: those of the program's stdout and stderr, to read and to write, and a file. */
const [OUT_READ, OUT_WRITE, ERR_READ, ERR_WRITE, FILE] = [3, 4, 5, 6, 7];
/** Those from which the host reads. */
export const STDOUT_OF_PROGRAM = OUT_READ;
export const STDERR_OF_PROGRAM = ERR_READ;
/** The descriptor from which what stands around a program reads the filter of calls. */
const FILTER = 3;
/** Where the launcher answers. */
const ANSWERS = 1;

const [READ, WRITE, CREATE, NEW, CLOSE_ON_EXEC] = [0, 1, 0o100, 0o200, 0o2000000];
/** All paths are absolute, and so it does not matter from where they begin. */
const ANYWHERE = 0;
const SEEK_END = 2;
const AT_REMOVEDIR = 0x200;
/** The child goes on in the same memory, and the launcher when that has become the program or has ended; see vfork(2). */
const VFORK = 0x0000_4100 | 17;
const [PR_SET_PDEATHSIG, PR_SET_DUMPABLE] = [1, 4];
const SIGKILL = 9;
const ANY_CHILD = -1;
/** The kernel's numbers of limits. */
const RESOURCES: Readonly<Record<Bound['name'], number>> = { cpu: 0, fsize: 1, nproc: 6, nofile: 7 };

/** The most calls that may fail on the way to the program. */
const MOST_RESULTS = 40;
/** The most files that a folder is made with. */
const MOST_FILES = 2;
const FILES_AT = 8 * (1 + MOST_RESULTS);
/** The answer to a start: the process, the results of the calls that must not fail, and whether files were written as a whole. */
export const STARTED_BYTES = FILES_AT + 8 * MOST_FILES;
/** The answer when the program has ended: its status. */
export const ENDED_BYTES = 8;
/** The answer to a removal: what came of the folder. */
export const REMOVED_BYTES = 8;

/** A list with calls that must not fail. */
class StrictCalls {
  #failed = new Place();
  #count = 0;
  #files = 0;

  /** The results are kept at an address. */
  constructor(
    private readonly list: CallList,
    private readonly answer: number,
  ) {}

  /** From here on, the list goes on at a place after an error. */
  onFailure(place: Place): void {
    this.#failed = place;
  }

  call(name: CallName, ...args: number[]): void {
    this.#count += 1;
    if (this.#count > MOST_RESULTS) throw new Error('the program has more limits than there are');
    this.list.call(name, args, { keepAt: this.answer + 8 * this.#count, ifNegative: this.#failed });
  }

  /** Where the disk is full, less is written than was asked for, and this leads before the beginning of the file. */
  mustHaveWritten(descriptor: number, bytes: number): void {
    if (this.#files === MOST_FILES) throw new Error('the folder has more files than there are');
    const keepAt = this.answer + FILES_AT + 8 * this.#files;
    this.list.call('lseek', [descriptor, -bytes, SEEK_END], { keepAt, ifNegative: this.#failed });
    this.#files += 1;
  }
}

/** Makes the folder of a program, starts it, tells so, waits for it, and tells how it has ended. */
export function startCalls(request: StartRequest, architecture: Architecture): Buffer {
  const { folder, tree } = request;
  const list = new CallList(architecture);
  const answer = list.room(STARTED_BYTES / 8);
  const strict = new StrictCalls(list, answer);
  const [child, told, refused] = [new Place(), new Place(), new Place()];
  strict.onFailure(told);

  // A launcher whose host was killed must not start what it has been told before.
  list.call('prctl', [PR_SET_PDEATHSIG, SIGKILL]);
  // What is left of the program before, and of a start that has failed.
  for (const descriptor of [OUT_READ, ERR_READ, FILE]) list.call('close', [descriptor]);
  // New ones for each program: what has the ends of an earlier one must not write into its output.
  strict.call('pipe2', list.room(1), CLOSE_ON_EXEC);
  strict.call('pipe2', list.room(1), CLOSE_ON_EXEC);
  const user = tree.kind === 'user' ? tree.uid : null;
  // It may open `/dev/stdout` and `/dev/stderr`, as scripts do, which takes the ownership of what is behind them.
  if (user !== null) for (const pipe of [OUT_WRITE, ERR_WRITE]) strict.call('fchown', pipe, user, user);
  makeFolder(list, strict, folder, user);
  list.call('clone', [VFORK], { keepAt: answer, ifNegative: told, ifZero: child });
  // The child has changed its user in the same memory, after which `/proc` would show nobody the descriptors of the launcher.
  list.call('prctl', [PR_SET_DUMPABLE, 1]);
  list.reach(told);
  for (const descriptor of [OUT_WRITE, ERR_WRITE]) list.call('close', [descriptor]);
  list.call('write', [ANSWERS, answer, STARTED_BYTES]);
  const status = list.room(1);
  list.call('wait4', [ANY_CHILD, status]);
  list.call('write', [ANSWERS, status, ENDED_BYTES]);
  list.end();

  list.reach(child);
  strict.onFailure(refused);
  becomeProgram(list, strict, request);
  list.reach(refused);
  list.call('exit_group', [127]);
  return list.message();
}

function makeFolder(list: CallList, strict: StrictCalls, folder: FolderParts, user: number | null): void {
  const at = list.text(folder.path);
  const output = list.text(join(folder.path, OUTPUT_FOLDER));
  strict.call('mkdirat', ANYWHERE, at, 0o700);
  strict.call('mkdirat', ANYWHERE, output, 0o700);
  if (user !== null) strict.call('fchownat', ANYWHERE, output, user, user);
  for (const [name, text] of filesOf(folder)) {
    const bytes = Buffer.from(text);
    const path = list.text(join(folder.path, name));
    strict.call('openat', ANYWHERE, path, WRITE | CREATE | NEW | CLOSE_ON_EXEC, 0o600);
    strict.call('write', FILE, list.bytes(bytes), bytes.length);
    strict.mustHaveWritten(FILE, bytes.length);
    if (user !== null) strict.call('fchown', FILE, user, user);
    list.call('close', [FILE]);
  }
  // The folder comes last: what is inside cannot be replaced before it is the program's own.
  if (user !== null) strict.call('fchownat', ANYWHERE, at, user, user);
}

function becomeProgram(list: CallList, strict: StrictCalls, request: StartRequest): void {
  const { argv, env, folder, filter, tree, bounds, group } = request;
  const open = (path: string, how: number) =>
    strict.call('openat', ANYWHERE, list.text(path), how | CLOSE_ON_EXEC);
  // It ends with the launcher, which waits for it: from its first call on, but for those that change its user.
  strict.call('prctl', PR_SET_PDEATHSIG, SIGKILL);
  if (group !== null) {
    // Before all else: what it uses from here on counts. The kernel takes 0 for the process that writes.
    open(join(group.path, 'cgroup.procs'), WRITE);
    strict.call('write', FILE, list.text('0'), 1);
    list.call('close', [FILE]);
  }
  // A session of its own: signals from terminals do not reach it, and its group can be signalled as a whole.
  strict.call('setsid');
  open(join(folder.path, PAYLOAD_FILE), READ);
  strict.call('dup3', FILE, 0, 0);
  list.call('close', [FILE]);
  strict.call('dup3', OUT_WRITE, 1, 0);
  strict.call('dup3', ERR_WRITE, 2, 0);
  if (filter !== null) {
    open(filter, READ);
    strict.call('dup3', FILE, FILTER, 0);
  }
  strict.call('chdir', list.text(folder.path));
  if (tree.kind === 'user') {
    strict.call('setgroups', 0);
    strict.call('setresgid', tree.uid, tree.uid, tree.uid);
    strict.call('setresuid', tree.uid, tree.uid, tree.uid);
  }
  // A change of the user takes this back. The launcher may have ended in between: what it ran is then found by its user.
  strict.call('prctl', PR_SET_PDEATHSIG, SIGKILL);
  // Not as root, who could raise what the worker itself is limited to.
  for (const { name, soft, hard } of bounds) {
    strict.call('prlimit64', 0, RESOURCES[name], list.numbers([soft, hard]));
  }
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  strict.call('execve', list.text(argv[0]), list.texts(argv), list.texts(variables));
}

/** Removes what a folder was made with, and the folder if nothing else is in it, and tells what came of that. */
export function removeCalls(folder: FolderParts, architecture: Architecture): Buffer {
  const list = new CallList(architecture);
  const answer = list.room(1);
  for (const [name] of filesOf(folder)) list.call('unlinkat', [ANYWHERE, list.text(join(folder.path, name))]);
  list.call('unlinkat', [ANYWHERE, list.text(join(folder.path, OUTPUT_FOLDER)), AT_REMOVEDIR]);
  list.call('unlinkat', [ANYWHERE, list.text(folder.path), AT_REMOVEDIR], { keepAt: answer });
  list.call('write', [ANSWERS, answer, REMOVED_BYTES]);
  list.end();
  return list.message();
}

/** What an answer of `STARTED_BYTES` says. */
export function readStarted(answer: Buffer): { readonly pid: number } | { readonly errno: number } {
  for (let at = 0; at < STARTED_BYTES; at += 8) {
    const result = answer.readInt32LE(at);
    if (result < 0) return { errno: at < FILES_AT ? -result : constants.errno.ENOSPC };
  }
  return { pid: answer.readInt32LE(0) };
}

/** What an answer of `ENDED_BYTES` says; see wait(2). */
export function readEnded(answer: Buffer): { exitCode: number | null; signal: number | null } {
  const status = answer.readInt32LE(0);
  const signal = status & 0x7f;
  return signal === 0 ? { exitCode: (status >> 8) & 0xff, signal: null } : { exitCode: null, signal };
}

/** Whether an answer of `REMOVED_BYTES` says that the folder is gone. */
export function readRemoved(answer: Buffer): boolean {
  return answer.readInt32LE(0) === 0;
}
