import { setImmediate as nextIteration } from 'node:timers/promises';
import { admissionTime } from '../core/admission-time.js';
import { messageOf, PunctualError } from '../core/errors.js';
import {
  dueTimeOf,
  type ParsedSubmission,
  parseSubmission,
  readSubmissionText,
  taskNamesOf,
} from '../core/submission.js';
import type { TaskLookup } from '../core/task-defaults.js';
import { resolveArtifacts } from '../store/artifact-names.js';
import { findCancelled } from '../store/cancel-requests.js';
import { toRow } from '../store/job-row.js';
import type { KeyedJob } from '../store/key-holders.js';
import { Names, type Resolved } from '../store/names.js';
import { readSubmissions, type ToAdmit } from '../store/place-jobs.js';
import { RefusedNamesError } from '../store/refused-names.js';
import { NEVER } from '../store/submit-workflow.js';
import type { LeaderState } from './leader-state.js';

/** How long parsing may block the event loop. */
const PARSE_MS = 10;
/** Bounds of the length of a submission: escapes and blanks make it longer than what is stored of it. */
const TEXT_PER_PAYLOAD = 4;
const TEXT_BESIDE_PAYLOAD = 64 * 1024;

/** Why a job ends without having run. */
interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** A job whose submission has not been read yet. */
export interface Unread extends ToAdmit {
  /** When it was submitted, in microseconds on the database's clock. */
  readonly saidAt: number | null;
}

/** A submission made inside a caller's transaction, with the row that it was parsed into. */
export interface Raw extends KeyedJob {
  readonly id: string;
  readonly admitAt: number | null;
  /** Why it cannot run. */
  readonly refusal: Refusal | null;
}

/** A parsed submission, or the reason why it cannot be parsed. */
interface Parsed {
  readonly job: Unread;
  /** Null if it cannot be parsed. */
  readonly submission: ParsedSubmission | null;
  /** Why it cannot run; null if it can. */
  readonly refusal: Refusal | null;
  /** When a job would have been due that cannot be parsed; the time of its submission where that cannot be read. */
  readonly runAt?: number;
}

/** A submission that was read and is not parsed yet. */
interface Read {
  readonly job: Unread;
  readonly input: unknown;
}

/** Of a job that was cancelled before it was admitted, perhaps in the transaction that submitted it. */
export const CANCELLED: Refusal = {
  code: 'CANCELLED',
  message: 'The job was cancelled before it was admitted.',
};

/** Makes rows of the submissions that callers wrote into `later` inside their own transactions. */
export class SubmissionParser {
  private readonly names: Names;
  private readonly unlimitedNames: Names;

  constructor(private readonly state: LeaderState) {
    this.names = new Names(state.hot, state.config);
    this.unlimitedNames = new Names(state.hot, { maxOrigins: state.config.maxOrigins });
  }

  /** Reads and parses the submissions of these jobs. */
  async parse(jobs: readonly Unread[]): Promise<Raw[]> {
    const parsed = await this.read(jobs);
    // After the submissions were read: a request that was committed together with one of them is visible by now.
    const cancelled = await findCancelled(
      this.state.hot,
      parsed.map(({ job }) => job),
    );
    return this.toRaws(
      parsed.map((each) =>
        each.refusal === null && cancelled.has(each.job.id) ? { ...each, refusal: CANCELLED } : each,
      ),
    );
  }

  /** The row of a job that cannot be stored, so that its failure can be recorded. */
  async refused(job: ToAdmit, refusal: Refusal): Promise<Raw[]> {
    return this.toRaws([{ job: { ...job, saidAt: null }, submission: null, refusal, runAt: job.createdAt }]);
  }

  /** Reads and parses submissions, except those that exceed the bound of length. */
  private async read(jobs: readonly Unread[]): Promise<Parsed[]> {
    const { config, hot } = this.state;
    const maxBytes = TEXT_PER_PAYLOAD * config.maxPayload + TEXT_BESIDE_PAYLOAD;
    const texts = await readSubmissions(
      hot,
      jobs.filter((job) => job.bytes <= maxBytes).map((job) => job.id),
    );
    const read: (Parsed | Read)[] = [];
    await inSlices(jobs, (job) => {
      const text = texts.get(job.id);
      if (text !== undefined) read.push(this.readOne(job, text));
      else if (job.bytes > maxBytes) {
        const message = `The submission has ${job.bytes} bytes; more than ${maxBytes} are not read.`;
        const refusal = { code: 'PAYLOAD_TOO_LARGE', message };
        read.push({ job, submission: null, refusal, runAt: job.createdAt });
      }
    });
    const tasksOf = await this.findTasks(read.filter((each) => 'input' in each));
    const parsed: Parsed[] = [];
    await inSlices(read, (each) => {
      parsed.push('input' in each ? this.parseOne(each, tasksOf.get(each.job.tenant)!) : each);
    });
    return parsed;
  }

  private readOne(job: Unread, text: string): Parsed | Read {
    try {
      return { job, input: readSubmissionText(text, this.state.config) };
    } catch (error) {
      return refused(job, undefined, error);
    }
  }

  /** The definitions of the tasks that the submissions name, by tenant: each is looked up once. */
  private async findTasks(read: readonly Read[]): Promise<Map<string, TaskLookup>> {
    const inputs = new Map<string, unknown[]>();
    for (const { job, input } of read) {
      const ofTenant = inputs.get(job.tenant);
      if (ofTenant) ofTenant.push(input);
      else inputs.set(job.tenant, [input]);
    }
    const tasksOf = new Map<string, TaskLookup>();
    for (const [tenant, ofTenant] of inputs)
      tasksOf.set(tenant, await this.state.tasks.find(tenant, () => taskNamesOf(ofTenant)));
    return tasksOf;
  }

  private parseOne({ job, input }: Read, tasks: TaskLookup): Parsed {
    const context = { ...this.state.config, now: job.createdAt, tasks };
    try {
      return { job, submission: parseSubmission(input, context), refusal: null };
    } catch (error) {
      return refused(job, input, error);
    }
  }

  /** What stands in for a submission needs names, too, and must get them whatever the quotas. */
  private async resolve(parsed: readonly Parsed[], now: number): Promise<Resolved[]> {
    const namesIn = ({ job, submission }: Parsed) => ({
      tenant: job.tenant,
      ...namesOf(submission ?? PLACEHOLDER),
    });
    const given = parsed.filter(({ submission }) => submission !== null);
    const missing = parsed.filter(({ submission }) => submission === null);
    const ofGiven = (await this.names.resolve(given.map(namesIn), now)).values();
    const ofMissing = (await this.unlimitedNames.resolve(missing.map(namesIn), now)).values();
    return parsed.map(({ submission }) => (submission ? ofGiven : ofMissing).next().value!);
  }

  /** Replaces the names of artifacts by ids, and refuses what names none that is there. */
  private async withArtifacts(parsed: readonly Parsed[], now: number): Promise<readonly Parsed[]> {
    const { hot, config } = this.state;
    const jobs = parsed.flatMap(({ job: { tenant }, submission }) =>
      submission ? [{ tenant, definition: submission.definition }] : [],
    );
    const resolved = await resolveArtifacts(hot, jobs, now, config.artifactTimeout);
    if (resolved.size === 0) return parsed;
    return parsed.map((each) => {
      const { submission } = each;
      const found = submission && resolved.get(submission.definition);
      if (!submission || !found) return each;
      if (!(found instanceof PunctualError))
        return { ...each, submission: { ...submission, definition: found } };
      const { code, message } = found;
      const refusal = each.refusal ?? { code, message };
      return { ...each, submission: null, refusal, runAt: submission.definition.runAt };
    });
  }

  private async toRaws(given: readonly Parsed[]): Promise<Raw[]> {
    const { config, clock } = this.state;
    const now = clock.now();
    const parsed = await this.withArtifacts(given, now);
    const read = parsed.map((each) => ({
      ...each,
      submission: each.submission ?? placeholder(each.runAt ?? each.job.createdAt),
    }));
    let ids: Resolved[];
    try {
      ids = await this.resolve(parsed, now);
    } catch (error) {
      if (!(error instanceof RefusedNamesError)) throw error;
      return this.toRaws(parsed.map((each) => refuseNames(each, error)));
    }
    return read.map(({ job, submission, refusal }, i) => ({
      id: job.id,
      row: toRow(job.id, submission, {
        ...ids[i]!,
        tenant: job.tenant,
        createdAt: job.createdAt,
        createdBy: job.createdBy,
      }),
      held: submission.definition.hold,
      keyRule: submission.definition.keyRule,
      saidAt: job.saidAt,
      admitAt: submission.definition.awaits
        ? NEVER
        : admissionTime(submission.definition.runAt, now, config.laterThreshold),
      refusal,
    }));
  }
}

/** Does something with each item, and lets the event loop run in between. */
async function inSlices<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  let pausedAt = performance.now();
  for (const item of items) {
    work(item);
    if (performance.now() - pausedAt < PARSE_MS) continue;
    await nextIteration();
    pausedAt = performance.now();
  }
}

/** A submission that is not valid. */
function refused(job: Unread, read: unknown, error: unknown): Parsed {
  const code = error instanceof PunctualError ? error.code : 'INVALID_REQUEST';
  const runAt = dueTimeOf(read, job.createdAt);
  return { job, submission: null, refusal: { code, message: messageOf(error) }, runAt };
}

/** Refuses a submission that needs a queue or a label set beyond the quota of its tenant. */
function refuseNames(parsed: Parsed, error: RefusedNamesError): Parsed {
  const { job, submission } = parsed;
  if (!submission || !error.refuses({ tenant: job.tenant, ...namesOf(submission) })) return parsed;
  const { code, message } = error;
  return { job, submission: null, refusal: { code, message }, runAt: submission.definition.runAt };
}

function namesOf({ definition: { queue, needs } }: ParsedSubmission) {
  return { queue, needs };
}

/** Stands in for a submission that cannot be parsed, so that its failure has a row in history, with its true times. */
function placeholder(runAt: number): ParsedSubmission {
  const { definition, payload } = PLACEHOLDER;
  return { definition: { ...definition, runAt }, payload };
}

const PLACEHOLDER: ParsedSubmission = parseSubmission(
  { task: 'invalid' },
  { now: 0, maxPayload: 1024, maxDepth: 8, jobTimeout: 1, maxJobTimeout: 1, allowCommands: false },
);
