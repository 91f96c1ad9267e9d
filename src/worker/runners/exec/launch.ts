import { join } from 'node:path';
import { parseDuration } from '../../../core/duration.js';
import type { Execution, LimitReport } from '../../../core/execution.js';
import type { ExecLimits, Isolation } from '../../../core/job.js';
import type { Controller } from './control-groups.js';
import { ExecError } from './exec-error.js';
import type { GroupSettings } from './host/control-group.js';
import type { Bound, Tree } from './host/messages.js';
import type { HardLimits, Machine } from './machine.js';
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
  /** Limits of each process. */
  readonly bounds: readonly Bound[];
  /** Limits of all of its processes together, which a control group keeps; null if it needs none. */
  readonly group: GroupSettings | null;
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
  const { user, isolation } = program;
  const limits = withinHard(program.limits, machine.hardLimits, user !== null);
  const canBound = machine.launcher !== null || machine.prlimit !== null;
  const controllers = controllersOf(machine);
  const keptWith = (seesNoGroups: boolean): Kept => ({
    bounds: canBound ? boundsOf(limits, machine.hardLimits, user !== null) : [],
    group: groupOf(limits, controllers),
    limits: reportLimits(limits, {
      ...{ canBound, hasUser: user !== null, controllers },
      canLeaveGroup: user === null && !seesNoGroups,
    }),
  });
  if (isolation === 'none') return bare(program, machine, keptWith(false));
  // In namespaces alone, a program may mount the control groups.
  const apart =
    inBubblewrap(program, machine, keptWith(true)) ?? inNamespaces(program, machine, keptWith(false));
  if (apart) return apart;
  if (isolation === 'required') throw notIsolated(machine);
  return bare(program, machine, keptWith(false));
}

/** How limits are kept, whatever stands around the program. */
interface Kept {
  readonly bounds: readonly Bound[];
  readonly group: GroupSettings | null;
  readonly limits: Execution['limits'];
}

type Start = (program: Launch, machine: Machine, kept: Kept) => Launched;
type MaybeStart = (...given: Parameters<Start>) => Launched | null;

/** An empty root for a binary, and all files of the machine, to read only, for a command. */
const inBubblewrap: MaybeStart = (program, { bubblewrap }, { limits, ...kept }) => {
  if ('why' in bubblewrap) return null;
  const { file, args, folder, needsMachine, filter } = program;
  const inside = needsMachine ? { file, folder } : { file: JOB, folder: WORK };
  const around = [bubblewrap.use, ...bubblewrapWords(program, inside), '--'];
  return {
    ...{ argv: words([...around, inside.file, ...args]), ...kept, tree: treeOf(program), isWrapped: true },
    ...{ filter, folder: inside.folder, execution: { isolation: 'bubblewrap', limits } },
  };
};

const inNamespaces: MaybeStart = (program, { namespaces }, { limits, ...kept }) => {
  if ('why' in namespaces) return null;
  const { file, args, folder, needsMachine, hidden } = program;
  const { words: around, setpriv } = namespaces.use;
  const inside = needsMachine ? file : join(folder, TAKEN_PROGRAM);
  // A blank would end the name of a folder.
  const empty = [...EMPTIED, ...hidden].filter((path) => !path.includes(' ')).join(' ');
  const given = [folder, needsMachine ? '' : file, setpriv, empty];
  return {
    ...{
      argv: words([...around, ...given, inside, ...args]),
      ...kept,
      tree: treeOf(program),
      isWrapped: true,
    },
    ...{ filter: null, folder, execution: { isolation: 'namespaces', limits } },
  };
};

/** With nothing around it but what is needed to end it as a whole. */
const bare: Start = (program, machine, { limits, ...kept }) => {
  const { file, args, folder, user, isolation } = program;
  const { ownNamespace } = machine;
  const missing = isolation === 'none' ? [] : [whyNot(machine)];
  const isFree = user === null && 'why' in ownNamespace;
  if (isFree) missing.push(`Processes that leave their group may survive: ${ownNamespace.why}`);
  // The shell is the first process of the namespace: signals that such a one sends to itself are ignored.
  const isWrapped = user === null && 'use' in ownNamespace;
  const init = isWrapped ? [...ownNamespace.use, '/bin/sh', '-c', '"$@"; exit $?', 'sh'] : [];
  return {
    ...{ argv: words([...init, file, ...args]), ...kept, isWrapped, filter: null, folder },
    tree: isFree ? { kind: 'group' } : treeOf(program),
    execution: {
      isolation: 'none',
      ...(missing.length > 0 && { notIsolated: missing.join('. ') }),
      limits,
    },
  };
};

function treeOf({ user }: Launch): Tree {
  return user === null ? { kind: 'namespace' } : { kind: 'user', uid: user };
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

/** Limits that each process keeps, not above what the worker itself is limited to, which is in force anyway. */
function withinHard(limits: ExecLimits, { nofile, nproc }: HardLimits, hasUser: boolean): ExecLimits {
  return lowerLimits(limits, {
    ...(limits.files !== undefined && nofile !== undefined && { files: nofile }),
    ...(limits.processes !== undefined && nproc !== undefined && hasUser && { processes: nproc }),
  });
}

/** Limits of each process, which the kernel keeps. */
function boundsOf(limits: ExecLimits, most: HardLimits, hasUser: boolean): Bound[] {
  const { files, cpuTime, disk, processes } = limits;
  const seconds = cpuTime === undefined ? undefined : Math.ceil(parseDuration(cpuTime)! / 1_000);
  const bound = (name: Bound['name'], soft: number | undefined, hard = soft): Bound[] =>
    soft === undefined
      ? []
      : [{ name, soft: Math.min(soft, most[name] ?? soft), hard: Math.min(hard!, most[name] ?? hard!) }];
  return [
    ...bound('nofile', files),
    // A second after the signal that a program may catch, the kernel ends it.
    ...bound('cpu', seconds, seconds && seconds + 1),
    ...bound('fsize', disk),
    ...(hasUser ? bound('nproc', processes) : []),
  ];
}

/** The processes around a program, which its control group counts, too. */
const PROCESSES_AROUND = 4;
/** The period over which a share of the processors is counted, in microseconds. */
const CPU_PERIOD = 100_000;
/** The kernel's least quota of a period. */
const LEAST_QUOTA = 1_000;

/** Only the launcher has programs enter a group before they are themselves. */
function controllersOf({ launcher, groups }: Machine): ReadonlySet<Controller> {
  return launcher !== null && 'use' in groups ? groups.use.controllers : new Set();
}

/** The limits that a control group keeps. */
function groupOf(limits: ExecLimits, controllers: ReadonlySet<Controller>): GroupSettings | null {
  const { memory, processes, cpus } = limits;
  const quota = (share: number) => Math.max(LEAST_QUOTA, Math.round(share * CPU_PERIOD));
  const settings = {
    ...(memory !== undefined &&
      controllers.has('memory') && {
        'memory.max': String(memory),
        'memory.swap.max': '0',
        // All of them, instead of the one that the kernel likes least.
        'memory.oom.group': '1',
      }),
    ...(processes !== undefined &&
      controllers.has('pids') && { 'pids.max': String(processes + PROCESSES_AROUND) }),
    ...(cpus !== undefined && controllers.has('cpu') && { 'cpu.max': `${quota(cpus)} ${CPU_PERIOD}` }),
  };
  return Object.keys(settings).length === 0 ? null : settings;
}

interface Means {
  readonly canBound: boolean;
  readonly hasUser: boolean;
  readonly controllers: ReadonlySet<Controller>;
  /** Whether it could move into another group, as the worker's own user can. */
  readonly canLeaveGroup: boolean;
}

/** What is done about each limit that was asked for. */
function reportLimits(
  limits: ExecLimits,
  { canBound, hasUser, controllers, canLeaveGroup }: Means,
): Execution['limits'] {
  const inGroup = canLeaveGroup ? 'approximated' : 'enforced';
  const how: Record<keyof ExecLimits, LimitReport['how']> = {
    // The kernel counts the time of each process apart.
    cpuTime: canBound ? 'approximated' : 'absent',
    cpus: controllers.has('cpu') ? inGroup : 'absent',
    // Without a control group, memory is measured several times a second, as the disk is.
    memory: controllers.has('memory') ? inGroup : 'approximated',
    disk: 'approximated',
    files: canBound ? 'enforced' : 'absent',
    // Counted per user: the processes of others would count, too.
    processes: canBound && hasUser ? 'enforced' : controllers.has('pids') ? inGroup : 'absent',
    output: 'enforced',
  };
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, { value, how: how[name as keyof ExecLimits] }]),
  );
}
