import { join } from 'node:path';
import { parseDuration } from '../../../core/duration.js';
import type { Execution, LimitReport } from '../../../core/execution.js';
import type { ExecLimits, Isolation } from '../../../core/job.js';
import { ExecError } from './exec-error.js';
import type { Tree } from './host/messages.js';
import type { Machine } from './machine.js';
import { EMPTIED, TAKEN_PROGRAM } from './namespace-script.js';

/** How a program is started: what stands around it, and what of its limits and of its isolation is in force. Pure. */

/** Where the program sees its folder, and itself, inside of bubblewrap. */
const WORK = '/work';
const JOB = '/job';

/** What is to be started. */
export interface Launch {
  /** The file of the program, as it is outside. */
  readonly file: string;
  readonly args: readonly string[];
  /** Its own folder, as it is outside. */
  readonly folder: string;
  /** Whether it needs the files of the machine, as a command does; a static binary needs none. */
  readonly needsMachine: boolean;
  /** Folders that it must not see. */
  readonly hidden: readonly string[];
  readonly isolation: Isolation;
  readonly limits: ExecLimits;
  /** The user of the attempt; null if it has none of its own. */
  readonly user: number | null;
  /** The file with the filter of calls to the kernel; null if there is none for this processor. */
  readonly filter: string | null;
}

/** A program with everything around it. */
export interface Launched {
  readonly argv: readonly [string, ...string[]];
  readonly tree: Tree;
  readonly isWrapped: boolean;
  /** The file that must be open as descriptor 3. */
  readonly filter: string | null;
  /** Its folder, as the program sees it. */
  readonly folder: string;
  readonly execution: Pick<Execution, 'isolation' | 'notIsolated' | 'limits'>;
}

/** The stricter of what two sides ask for. */
export function stricter(a: Isolation, b: Isolation): Isolation {
  const order: readonly Isolation[] = ['none', 'auto', 'required'];
  return order[Math.max(order.indexOf(a), order.indexOf(b))]!;
}

/** The lower of each two limits. */
export function lowerLimits(a: ExecLimits, b: ExecLimits): ExecLimits {
  const lower = { ...a, ...b } as Record<keyof ExecLimits, number | string>;
  for (const name of Object.keys(a) as (keyof ExecLimits)[]) {
    if (a[name] !== undefined && b[name] !== undefined && amount(a[name]) < amount(b[name]))
      lower[name] = a[name];
  }
  return lower as ExecLimits;
}

function amount(value: string | number): number {
  return typeof value === 'number' ? value : (parseDuration(value) ?? Number.POSITIVE_INFINITY);
}

/** How the program is started on this machine; throws if it must be isolated and cannot be. */
export function launch(program: Launch, machine: Machine): Launched {
  const { file, args, folder, isolation, limits, user } = program;
  const { prlimit, bubblewrap } = machine;
  const report = reportLimits(limits, { hasPrlimit: prlimit !== null, hasUser: user !== null });
  const bounds = prlimit === null ? [] : boundWords(prlimit, limits, user !== null);
  const tree: Tree = user === null ? { kind: 'namespace' } : { kind: 'user', uid: user };
  if (isolation !== 'none' && 'use' in bubblewrap) {
    const inside = program.needsMachine ? { file, folder } : { file: JOB, folder: WORK };
    const argv = words([
      ...bounds,
      bubblewrap.use,
      ...bubblewrapWords(program, inside),
      '--',
      inside.file,
      ...args,
    ]);
    const execution = { isolation: 'bubblewrap' as const, limits: report };
    return { argv, tree, isWrapped: true, filter: program.filter, folder: inside.folder, execution };
  }
  const { namespaces } = machine;
  if (isolation !== 'none' && 'use' in namespaces) {
    const { words: around, setpriv } = namespaces.use;
    const inside = program.needsMachine ? file : join(folder, TAKEN_PROGRAM);
    const empty = [...EMPTIED, ...program.hidden].filter((path) => !path.includes(' ')).join(' ');
    const given = [folder, program.needsMachine ? '' : file, setpriv, empty];
    const argv = words([...bounds, ...around, ...given, inside, ...args]);
    const execution = { isolation: 'namespaces' as const, limits: report };
    return { argv, tree, isWrapped: true, filter: null, folder, execution };
  }
  if (isolation === 'required') throw notIsolated(machine);
  const execution = {
    isolation: 'none' as const,
    ...(isolation === 'auto' && { notIsolated: whyNot(machine) }),
    limits: report,
  };
  if (user !== null)
    return {
      argv: words([...bounds, file, ...args]),
      tree,
      isWrapped: false,
      filter: null,
      folder,
      execution,
    };
  const { ownNamespace } = machine;
  if ('use' in ownNamespace) {
    // The shell is the first process of the namespace: signals that such a one sends to itself are ignored.
    const init = [...ownNamespace.use, '/bin/sh', '-c', '"$@"; exit $?', 'sh'];
    return {
      argv: words([...bounds, ...init, file, ...args]),
      tree,
      isWrapped: true,
      filter: null,
      folder,
      execution,
    };
  }
  const group: Tree = { kind: 'group' };
  return {
    argv: words([...bounds, file, ...args]),
    tree: group,
    isWrapped: false,
    filter: null,
    folder,
    execution,
  };
}

function words(all: readonly string[]): readonly [string, ...string[]] {
  return all as unknown as readonly [string, ...string[]];
}

/** What is not available, and why. */
export function whyNot({ bubblewrap, namespaces }: Machine): string {
  const reasons = [bubblewrap, namespaces].flatMap((found) => ('why' in found ? [found.why] : []));
  return `Isolation is unavailable: ${reasons.join('; ')}`;
}

function notIsolated(machine: Machine): ExecError {
  const detail = `${whyNot(machine)}. The program must be isolated, and so it was not run.`;
  return new ExecError('ISOLATION_UNAVAILABLE', detail);
}

/**
 * An empty root with the binary and its folder; a command gets the files of the machine, to read only, without the folders that
 * hold what is not for it. Its environment is passed on by whoever starts it: `ps` would show what stands among the words.
 */
function bubblewrapWords(
  { file, folder, needsMachine, hidden, limits, filter }: Launch,
  inside: { readonly file: string; readonly folder: string },
): string[] {
  const apart = ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session'];
  const size = limits.disk === undefined ? [] : ['--size', String(Math.max(limits.disk, 4_096))];
  const empty = (path: string) => [...size, '--tmpfs', path];
  const machine = needsMachine
    ? [
        '--ro-bind',
        '/',
        '/',
        ...empty('/tmp'),
        ...empty('/var/tmp'),
        ...empty('/run'),
        ...hidden.flatMap(empty),
      ]
    : ['--ro-bind', file, inside.file, ...empty('/tmp')];
  const own = ['--proc', '/proc', '--dev', '/dev', '--bind', folder, inside.folder, '--chdir', inside.folder];
  const calls = filter === null ? [] : ['--seccomp', '3'];
  return [
    ...apart,
    '--cap-drop',
    'ALL',
    ...calls,
    ...machine,
    ...own,
    ...(needsMachine ? [] : ['--remount-ro', '/']),
  ];
}

/** Limits of each process, which the kernel keeps. */
function boundWords(prlimit: string, limits: ExecLimits, hasUser: boolean): string[] {
  const { files, cpuTime, disk, processes } = limits;
  const seconds = cpuTime === undefined ? null : Math.ceil(parseDuration(cpuTime)! / 1_000);
  const bounds = [
    ...(files === undefined ? [] : [`--nofile=${files}:${files}`]),
    // A second after the signal that a program may catch, the kernel ends it.
    ...(seconds === null ? [] : [`--cpu=${seconds}:${seconds + 1}`]),
    ...(disk === undefined ? [] : [`--fsize=${disk}:${disk}`]),
    ...(processes === undefined || !hasUser ? [] : [`--nproc=${processes}:${processes}`]),
  ];
  return bounds.length === 0 ? [] : [prlimit, ...bounds, '--'];
}

interface Means {
  readonly hasPrlimit: boolean;
  readonly hasUser: boolean;
}

/** What is done about each limit that was asked for. */
function reportLimits(limits: ExecLimits, { hasPrlimit, hasUser }: Means): Execution['limits'] {
  const how: Record<keyof ExecLimits, LimitReport['how']> = {
    // The kernel counts the time of each process apart.
    cpuTime: hasPrlimit ? 'approximated' : 'absent',
    cpus: 'absent',
    // Memory and disk are measured several times a second.
    memory: 'approximated',
    disk: 'approximated',
    files: hasPrlimit ? 'enforced' : 'absent',
    // Counted per user: the processes of others would count, too.
    processes: hasPrlimit && hasUser ? 'enforced' : 'absent',
    output: 'enforced',
  };
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, { value, how: how[name as keyof ExecLimits] }]),
  );
}
