import { hostname } from 'node:os';
import { SETTINGS } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import {
  type AttemptOutcome,
  type ExecLimits,
  ISOLATIONS,
  type Isolation,
  type JobError,
  type Labels,
  NAME_PATTERN,
  NAME_RULE,
  type TargetType,
} from '../core/job.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { isLog, type Log, SILENT_LOG } from '../core/log.js';
import { checkRate } from '../core/nested-options.js';
import { RATE_RULE, type RateText, type RateView, readRate } from '../core/rate.js';
import type { Middleware } from '../core/task.js';
import { ALL_QUEUES, type Assignment } from '../core/wire.js';
import { openLineLog } from '../host/line-log.js';

/** How an attempt ended, for the hooks of a worker. */
export interface EndedAttempt {
  readonly jobId: string;
  readonly tenant: string;
  /** The task's name; null for a job that was submitted with an inline target. */
  readonly task: string | null;
  readonly queue: string;
  readonly attempt: number;
  readonly fence: number;
  readonly outcome: AttemptOutcome;
  /** The error as it is reported; null if the attempt succeeded. */
  readonly error: JobError | null;
  readonly durationMs: number;
}

/**
 * Hooks for programs and tests. They watch only: what they throw, or reject with, is logged and has no effect, and the
 * worker does not wait for them.
 */
export interface WorkerEvents {
  /** The worker has registered with a leader, for the first time or again. */
  onRegistered?(workerId: string): void;
  /** A handler is about to be called. */
  onJobStarted?(assignment: Assignment): void;
  /** A handler has ended or was abandoned; its report follows. The error is null if it succeeded. */
  onJobEnded?(assignment: Assignment, outcome: AttemptOutcome, error: JobError | null): void;
  /** An attempt has ended, in whatever way. */
  onAttempt?(attempt: EndedAttempt): void;
  /** An attempt failed or timed out: what was thrown, as it was thrown, and how the attempt ended. */
  onError?(thrown: unknown, attempt: EndedAttempt): void;
  /** The scheduler has answered the report about an attempt. */
  onJobReported?(assignment: Assignment, answer: 'accepted' | 'stale' | 'refused'): void;
  /** Something went wrong that the worker handles itself. */
  onWarning?(warning: PunctualError): void;
}

/** How a worker runs programs. */
export interface ExecOptions {
  /**
   * A folder for what programs work on, and for binaries that were downloaded. Each worker needs one of its own, and the same
   * one at every start, because it ends what an earlier one left. Default: a temporary one.
   */
  readonly folder?: string;
  /** How programs are kept apart from the machine, unless their target asks for more; default `auto`. */
  readonly isolation?: Isolation;
  /** What a program may use at most; default no bounds of its own. */
  readonly limits?: ExecLimits;
  /** Whether it runs targets that name a command of this machine; default false. */
  readonly allowCommands?: boolean;
  /** Whether it runs artifacts that are scripts (#!); default false. */
  readonly allowScripts?: boolean;
  /**
   * The control group of version 2 below which each attempt gets one with its limits, as a whole path, such as
   * `/sys/fs/cgroup/punctual`; `off` for none. Default: that of the worker, if nothing else runs in it.
   */
  readonly controlGroup?: string;
  /** The most bytes of binaries that are kept; default 1 GiB. */
  readonly cacheBytes?: number;
}

const EXEC: OptionNames<ExecOptions> = {
  folder: true,
  isolation: true,
  limits: true,
  allowCommands: true,
  allowScripts: true,
  controlGroup: true,
  cacheBytes: true,
};

/** How a worker runs. */
export interface WorkerOptions {
  /** The worker's name in lists; default the host's name and the process id. */
  readonly name?: string;
  /**
   * Queues to take jobs from; `*` means all queues, also future ones. Default: the queues of its tasks, where a task
   * without a queue counts as one of `default`.
   */
  readonly queues?: readonly string[];
  /**
   * What it runs beside the handlers of its tasks: `http` makes the calls of http targets, `exec` runs programs. Default: the
   * handlers alone.
   */
  readonly targets?: readonly TargetType[];
  /** How it runs the programs of exec targets. */
  readonly exec?: ExecOptions;
  /**
   * Addresses and CIDR ranges that calls of http targets may go to although they are not public, such as `10.0.0.0/8`;
   * default none.
   */
  readonly allowAddresses?: readonly string[];
  /** Where receivers of calls report (`punctual-url`); default the address that the worker itself uses. */
  readonly publicUrl?: string;
  /** How many jobs run at once; default 10. */
  readonly slots?: number;
  /** The most jobs to start in a time, e.g. `100/1s` or `{ limit: 100, per: '1s', burst: 10 }`; default no limit. */
  readonly rate?: RateText | RateView;
  /** Whether to take jobs of all tenants, which needs an operator's key; default false. */
  readonly shared?: boolean;
  /** Labels that jobs may require, e.g. `{ region: 'eu' }`; default none. */
  readonly labels?: Labels;
  /** Largest result of a job as JSON, in bytes; default 256 KiB. Must not exceed the server's limit. */
  readonly maxResultBytes?: number;
  /** The most that one attempt may log, in bytes; default 1 MiB. */
  readonly maxLogBytes?: number;
  /** How long a handler may go on after its signal aborted before it is abandoned and its slot is free; default 5 s. */
  readonly stopGraceMs?: number;
  /** How long a drain may take before the worker stops at once, in milliseconds; default without limit. */
  readonly drainTimeoutMs?: number;
  /**
   * Whether `run()` keeps handlers from ending the process: an uncaught exception, an unhandled rejection or a call of
   * `process.exit()` fails the attempt that it came from. Default true.
   */
  readonly guardProcess?: boolean;
  /**
   * A folder for results that the scheduler has not answered, so that they survive the end of the process: the next
   * worker with this folder delivers them before it registers. Each worker needs a folder of its own, and the same
   * one at every start. Default none: such results are kept in memory only.
   */
  readonly keepResultsIn?: string;
  /**
   * Whether to publish the options of its tasks (`retry`, `timeout`, `queue` …) when it starts, so that jobs that are
   * submitted by name take them; needs a key that may define tasks. What people have defined stays as it is, with a
   * warning, unless it is `'overwrite'`. Default false.
   */
  readonly publish?: boolean | 'overwrite';
  /** Functions around every handler of the worker, the first outermost; default none. */
  readonly middleware?: readonly Middleware[];
  /**
   * Where the worker logs what it does, what it cannot do and which attempts failed: a logger with the methods of
   * pino, or false for none. Default: standard error, as readable lines on a terminal and as JSON elsewhere, from the
   * level `PUNCTUAL_LOG_LEVEL` on (`info`).
   */
  readonly log?: Log | false;
  readonly events?: WorkerEvents;
}

const OPTIONS: OptionNames<WorkerOptions> = {
  name: true,
  queues: true,
  targets: true,
  exec: true,
  allowAddresses: true,
  publicUrl: true,
  slots: true,
  rate: true,
  shared: true,
  labels: true,
  maxResultBytes: true,
  maxLogBytes: true,
  stopGraceMs: true,
  drainTimeoutMs: true,
  guardProcess: true,
  keepResultsIn: true,
  publish: true,
  middleware: true,
  log: true,
  events: true,
};

const EVENTS: OptionNames<WorkerEvents> = {
  onRegistered: true,
  onJobStarted: true,
  onJobEnded: true,
  onAttempt: true,
  onError: true,
  onJobReported: true,
  onWarning: true,
};

/** How a worker ended: with everything finished and reported, or stopped at once. */
export type WorkerEnd = 'drained' | 'stopped';

/** The phases of a worker. */
export type WorkerPhase = 'new' | 'starting' | 'running' | 'draining' | 'ended';

/** What a worker is doing. */
export interface WorkerStatus {
  readonly phase: WorkerPhase;
  readonly name: string;
  /** Empty before the worker is registered. */
  readonly workerId: string;
  /** The highest epoch it has seen of its shard; 0 before it is registered. */
  readonly epoch: number;
  /** The queues it takes jobs from. */
  readonly queues: readonly string[];
  readonly slots: number;
  readonly running: number;
  /** Attempts whose report the scheduler has not answered yet, including running ones. */
  readonly unanswered: number;
  /** Results on the disk. */
  readonly kept: number;
  /** The time since a leader last answered a heartbeat; null before the first answer. */
  readonly lastAnswerMs: number | null;
}

/** Worker options with all defaults filled in. */
export interface ResolvedWorkerOptions
  extends Required<Omit<WorkerOptions, 'keepResultsIn' | 'rate' | 'log' | 'publicUrl' | 'exec'>> {
  readonly exec: Required<Omit<ExecOptions, 'folder'>> & { readonly folder: string | null };
  readonly publicUrl: string | undefined;
  readonly log: Log;
  readonly rate: RateView | null;
  readonly keepResultsIn: string | null;
  readonly maxErrorBytes: number;
}

/** Fills in the defaults and checks the values. `taskQueues` are the queues of the worker's tasks. */
export function resolveWorkerOptions(
  options: WorkerOptions,
  taskQueues: readonly string[] = [],
): ResolvedWorkerOptions {
  checkOptions('worker()', options, OPTIONS);
  checkRate('worker()', options.rate);
  checkOptions('exec of worker()', options.exec, EXEC);
  // An object of a class may have fields of its own beside its hooks.
  if (options.events && Object.getPrototypeOf(options.events) === Object.prototype)
    checkOptions('events of worker()', options.events, EVENTS);
  const resolved: ResolvedWorkerOptions = {
    name: options.name ?? `${hostname()}-${process.pid}`,
    queues: options.queues ?? (taskQueues.length > 0 ? taskQueues : ['default']),
    targets: options.targets ?? ['handler'],
    exec: resolveExec(options.exec ?? {}),
    allowAddresses: options.allowAddresses ?? [],
    publicUrl: options.publicUrl,
    slots: options.slots ?? 10,
    rate: options.rate === undefined ? null : resolveRate(options.rate),
    shared: options.shared ?? false,
    labels: options.labels ?? {},
    maxResultBytes: options.maxResultBytes ?? SETTINGS.maxPayload.default,
    maxLogBytes: options.maxLogBytes ?? SETTINGS.maxLog.default,
    maxErrorBytes: SETTINGS.maxError.default,
    stopGraceMs: options.stopGraceMs ?? 5_000,
    drainTimeoutMs: options.drainTimeoutMs ?? Number.POSITIVE_INFINITY,
    guardProcess: options.guardProcess ?? true,
    keepResultsIn: options.keepResultsIn ?? null,
    publish: options.publish ?? false,
    middleware: options.middleware ?? [],
    log: resolveLog(options.log),
    events: options.events ?? {},
  };
  if (!Number.isSafeInteger(resolved.slots) || resolved.slots < 1) {
    throw new PunctualError(
      'CONFIGURATION',
      `slots: expected a whole number from 1 on, got ${resolved.slots}.`,
    );
  }
  if (!(resolved.drainTimeoutMs >= 0)) {
    throw new PunctualError(
      'CONFIGURATION',
      `drainTimeoutMs: expected a number from 0 on, got ${resolved.drainTimeoutMs}.`,
    );
  }
  if (resolved.middleware.some((each) => typeof each !== 'function')) {
    throw new PunctualError(
      'CONFIGURATION',
      'middleware: expected a list of functions (context, next) => ….',
    );
  }
  if (![true, false, 'overwrite'].includes(resolved.publish)) {
    throw new PunctualError('CONFIGURATION', "publish: expected true, false or 'overwrite'.");
  }
  const badQueue = resolved.queues.find((queue) => queue !== ALL_QUEUES && !NAME_PATTERN.test(queue));
  if (badQueue !== undefined) {
    throw new PunctualError('CONFIGURATION', `queues: ${JSON.stringify(badQueue)} ${NAME_RULE}.`);
  }
  if (resolved.publicUrl !== undefined && !/^https?:\/\/[\u0021-\u007e]+$/.test(resolved.publicUrl)) {
    throw new PunctualError(
      'CONFIGURATION',
      'publicUrl: expected an address such as https://jobs.example.com.',
    );
  }
  const noTarget = resolved.targets.find((target) => !TARGETS.includes(target));
  if (noTarget !== undefined) {
    const detail = `targets: expected handler, http or exec, got ${JSON.stringify(noTarget)}.`;
    throw new PunctualError('CONFIGURATION', detail);
  }
  if (resolved.queues.length === 0) {
    throw new PunctualError('CONFIGURATION', 'queues: name at least one queue.');
  }
  return Object.freeze(resolved);
}

const TARGETS: readonly TargetType[] = ['handler', 'http', 'exec'];
const DEFAULT_CACHE_BYTES = 1024 ** 3;

function resolveExec(given: ExecOptions): ResolvedWorkerOptions['exec'] {
  const { isolation = 'auto', cacheBytes = DEFAULT_CACHE_BYTES } = given;
  if (!ISOLATIONS.includes(isolation)) {
    const detail = `exec.isolation: expected none, auto or required, got ${JSON.stringify(isolation)}.`;
    throw new PunctualError('CONFIGURATION', detail);
  }
  if (!(cacheBytes >= 0)) {
    throw new PunctualError('CONFIGURATION', 'exec.cacheBytes: expected a number from 0 on.');
  }
  return {
    folder: given.folder ?? null,
    isolation,
    limits: given.limits ?? {},
    allowCommands: given.allowCommands ?? false,
    allowScripts: given.allowScripts ?? false,
    controlGroup: given.controlGroup ?? '',
    cacheBytes,
  };
}

function resolveLog(log: Log | false | undefined): Log {
  if (log === undefined) {
    return openLineLog(process.stderr, process.env.PUNCTUAL_LOG_LEVEL || 'info', process.env);
  }
  if (log === false) return SILENT_LOG;
  if (isLog(log)) return log;
  throw new PunctualError(
    'CONFIGURATION',
    'log: expected a logger with the methods debug, info, warn and error, or false.',
  );
}

function resolveRate(input: RateText | RateView): RateView {
  const rate = readRate(input);
  if (rate === null) throw new PunctualError('CONFIGURATION', `rate: ${RATE_RULE}.`);
  return rate;
}
