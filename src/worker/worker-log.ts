import type { Clock } from '../core/clock.js';
import { humanDuration } from '../core/duration.js';
import { type ErrorCode, messageOf, type PunctualError } from '../core/errors.js';
import { LineSampler } from '../core/line-sampler.js';
import { guardedLog, type Log } from '../core/log.js';
import { RepeatFilter } from '../core/repeat-filter.js';
import { UnreachableError } from '../transport/http-transport.js';
import type { Attempt } from './running-attempt.js';
import { monotonic } from './worker-clock.js';
import type { EndResult } from './worker-hooks.js';
import type { WorkerEnd, WorkerStatus } from './worker-options.js';

/** How often the same warning is logged: while no node answers, every loop of the worker repeats it. */
const SAME_WARNING_EVERY_MS = 10_000;
/** A change of leaders takes less than this, and is not worth a line. */
const BRIEF_MS = 1_000;
/** How often it is said that there is still no contact. */
const NO_CONTACT_EVERY_MS = 30_000;
/** The longest part of an error's message that a line shows. */
const MAX_ERROR_LENGTH = 500;

/** Errors which mean that no node, or no leader, can be asked at the moment. */
const NO_CONTACT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'UNREACHABLE',
  'NO_LEADER',
  'SHUTTING_DOWN',
  'DATABASE_UNAVAILABLE',
]);

interface WorkerLogParts {
  readonly log: Log;
  readonly name: string;
  /** The addresses of the nodes; empty for a worker inside a node's process. */
  readonly urls: readonly string[];
  /** Default: the process's monotonic clock. */
  readonly clock?: Pick<Clock, 'now' | 'after'>;
}

/** The lines that a worker logs: what it does, what it cannot do, and which of its attempts failed. */
export class WorkerLog {
  readonly #log: Log;
  readonly #name: string;
  readonly #urls: readonly string[];
  readonly #clock: Pick<Clock, 'now' | 'after'>;
  readonly #repeats: RepeatFilter;
  readonly #failures: LineSampler;
  #isRegistered = false;
  /** Since when no node has answered; null while one does. */
  #silentSince: number | null = null;
  /** Whether the silence was logged. */
  #saidSo = false;
  #sayAgainAt = Number.NEGATIVE_INFINITY;
  /** Why each address did not answer, as far as it is known. */
  readonly #reasons = new Map<string, string>();

  constructor({ log, name, urls, clock = monotonic }: WorkerLogParts) {
    this.#clock = clock;
    this.#repeats = new RepeatFilter(SAME_WARNING_EVERY_MS, () => clock.now());
    this.#log = guardedLog(log);
    this.#name = name;
    this.#urls = urls;
    this.#failures = new LineSampler(clock, (task, count) => {
      const of = task === '' ? 'several tasks' : task;
      this.#log.warn({ count, of }, 'more attempts failed, which are not listed');
    });
  }

  connecting(facts: Record<string, unknown>): void {
    this.#log.info({ worker: this.#name, ...this.#addresses(), ...facts }, 'connecting');
  }

  withoutTasks(): void {
    const advice = 'pass tasks to worker(), or name a module with --module';
    this.#log.warn({ worker: this.#name }, `the worker has no tasks and will get no jobs: ${advice}`);
  }

  registered(workerId: string): void {
    this.#log.info(
      { worker: this.#name, workerId },
      this.#isRegistered ? 'registered again' : 'registered; waiting for jobs',
    );
    this.#isRegistered = true;
    this.inContact();
  }

  /** A node has answered. */
  inContact(): void {
    if (this.#silentSince === null) return;
    const forTime = humanDuration(this.#clock.now() - this.#silentSince);
    this.#silentSince = null;
    this.#reasons.clear();
    if (!this.#saidSo) return;
    this.#saidSo = false;
    this.#log.info({ worker: this.#name, after: forTime }, 'in contact with the scheduler again');
  }

  /** Something went wrong that the worker handles itself. */
  warning(warning: PunctualError): void {
    if (NO_CONTACT.has(warning.code)) this.#noContact(warning);
    else if (this.#repeats.isNew(warning.message)) {
      this.#log.warn({ worker: this.#name, code: warning.code }, warning.message);
    }
  }

  /** The worker cannot start at all. */
  refused(error: PunctualError): void {
    const fields = { worker: this.#name, ...this.#addresses(), code: error.code, error: error.message };
    this.#log.error(fields, 'the worker cannot start');
  }

  /** A callback of the program has thrown. */
  hookFailed(hook: string, thrown: unknown): void {
    // A hook is called for every attempt, and its messages may all differ.
    if (!this.#repeats.isNew(`hook ${hook}`)) return;
    const error = messageOf(thrown).slice(0, MAX_ERROR_LENGTH);
    this.#log.warn({ worker: this.#name, hook, error }, 'a hook of the worker failed');
  }

  /** A middleware does what it should not. */
  mistake(message: string): void {
    if (this.#repeats.isNew(message)) this.#log.warn({ worker: this.#name }, message);
  }

  /** An attempt has ended without success. */
  unsuccessful({ assignment }: Attempt, result: EndResult): void {
    const { jobId: job, tenant, queue, attempt, target } = assignment;
    const task = assignment.task ?? ('name' in target ? target.name : target.type);
    const error = 'error' in result ? result.error : undefined;
    const fields = { job, tenant, task, queue, attempt, code: error?.code };
    const message = error?.message.slice(0, MAX_ERROR_LENGTH);
    if (result.outcome === 'cancelled') {
      this.#log.debug({ ...fields, reason: message }, 'an attempt was stopped');
      return;
    }
    if (!this.#failures.allows(task)) return;
    const how = result.outcome === 'timed-out' ? 'timed out' : 'failed';
    this.#log.warn({ ...fields, error: message }, `an attempt of ${task} ${how}`);
    if (error?.stack) this.#log.debug({ job, attempt, stack: error.stack }, 'where that error came from');
  }

  draining({ running, unanswered }: WorkerStatus): void {
    this.#log.info({ worker: this.#name, running, unanswered }, 'draining: taking no more jobs');
  }

  ended(end: WorkerEnd, { unanswered, kept }: WorkerStatus): void {
    this.#failures.close();
    const left = unanswered > 0 ? { unanswered, kept } : {};
    const how = end === 'drained' && this.#isRegistered ? 'drained and left' : 'stopped';
    this.#log.info({ worker: this.#name, ...left }, how);
  }

  #noContact(error: PunctualError): void {
    const now = this.#clock.now();
    this.#silentSince ??= now;
    if (error instanceof UnreachableError) this.#reasons.set(error.url, reasonOf(error));
    const allTried = this.#reasons.size > 0 && this.#reasons.size >= this.#urls.length;
    const isWorthALine = now - this.#silentSince >= BRIEF_MS || (!this.#isRegistered && allTried);
    if (!isWorthALine || now < this.#sayAgainAt) return;
    const forTime = this.#saidSo ? { for: humanDuration(now - this.#silentSince) } : {};
    this.#saidSo = true;
    this.#sayAgainAt = now + NO_CONTACT_EVERY_MS;
    const why = this.#reasons.size > 0 ? { why: [...this.#reasons.values()] } : { error: error.message };
    this.#log.warn(
      { worker: this.#name, ...this.#addresses(), ...forTime, code: error.code, ...why },
      this.#isRegistered
        ? 'lost contact with the scheduler; running jobs go on, and their results are kept'
        : 'the scheduler cannot be reached yet; trying again until it can',
    );
  }

  #addresses(): { urls?: readonly string[] } {
    return this.#urls.length > 0 ? { urls: this.#urls } : {};
  }
}

function reasonOf({ url, timedOut, cause }: UnreachableError): string {
  if (timedOut) return `${url}: no answer in time`;
  // An error about several addresses of one name has only a code.
  const code = (cause as { code?: unknown } | null)?.code;
  const isSilent = !(cause instanceof Error) || cause.message === '';
  return `${url}: ${isSilent && typeof code === 'string' ? code : messageOf(cause)}`;
}
