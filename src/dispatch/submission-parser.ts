import { setImmediate as nextIteration } from 'node:timers/promises';
import { messageOf, PunctualError } from '../core/errors.js';
import { type ParsedSubmission, parseSubmission, readSubmissionText } from '../core/submission.js';
import { type JobRow, toRow } from '../store/job-row.js';
import { LabelSetsError, Names, type Resolved } from '../store/names.js';
import { readSubmissions, type ToAdmit } from '../store/place-jobs.js';
import { admissionTime } from './admission-time.js';
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

/** A submission made inside a caller's transaction, with the row that it was parsed into. */
export interface Raw {
  readonly id: string;
  readonly row: JobRow;
  readonly held: boolean;
  readonly admitAt: number | null;
  /** Why it cannot run. */
  readonly refusal: Refusal | null;
}

/** A parsed submission, or the reason why it cannot be parsed. */
type Parsed = { readonly job: ToAdmit } & (
  | { readonly submission: ParsedSubmission; readonly refusal: null }
  | { readonly submission: null; readonly refusal: Refusal }
);

/** Makes rows of the submissions that callers wrote into `later` inside their own transactions. */
export class SubmissionParser {
  private readonly names: Names;

  constructor(private readonly state: LeaderState) {
    this.names = new Names(state.hot, state.config);
  }

  /** Reads and parses the submissions of these jobs. */
  async parse(jobs: readonly ToAdmit[]): Promise<Raw[]> {
    return this.toRaws(await this.read(jobs));
  }

  /** The row of a job that cannot be stored, so that its failure can be recorded. */
  async refused(job: ToAdmit, refusal: Refusal): Promise<Raw[]> {
    return this.toRaws([{ job, submission: null, refusal }]);
  }

  /** Reads and parses submissions, except those that exceed the bound of length. */
  private async read(jobs: readonly ToAdmit[]): Promise<Parsed[]> {
    const { config, hot } = this.state;
    const maxBytes = TEXT_PER_PAYLOAD * config.maxPayload + TEXT_BESIDE_PAYLOAD;
    const texts = await readSubmissions(
      hot,
      jobs.filter((job) => job.bytes <= maxBytes).map((job) => job.id),
    );
    const parsed: Parsed[] = [];
    let pausedAt = performance.now();
    for (const job of jobs) {
      const text = texts.get(job.id);
      if (text !== undefined) parsed.push(this.parseOne(job, text));
      else if (job.bytes > maxBytes) {
        const message = `The submission has ${job.bytes} bytes; more than ${maxBytes} are not read.`;
        parsed.push({ job, submission: null, refusal: { code: 'PAYLOAD_TOO_LARGE', message } });
      }
      if (performance.now() - pausedAt < PARSE_MS) continue;
      await nextIteration();
      pausedAt = performance.now();
    }
    return parsed;
  }

  private parseOne(job: ToAdmit, text: string): Parsed {
    try {
      const context = { ...this.state.config, now: job.createdAt };
      const submission = parseSubmission(readSubmissionText(text, context), context);
      return { job, submission, refusal: null };
    } catch (error) {
      const code = error instanceof PunctualError ? error.code : 'INVALID_REQUEST';
      return { job, submission: null, refusal: { code, message: messageOf(error) } };
    }
  }

  private async toRaws(parsed: readonly Parsed[]): Promise<Raw[]> {
    const { config, clock } = this.state;
    const now = clock.now();
    const read = parsed.map((each) => ({ ...each, submission: each.submission ?? PLACEHOLDER }));
    let ids: Resolved[];
    try {
      ids = await this.names.resolve(
        read.map(({ job, submission }) => ({ tenant: job.tenant, ...namesOf(submission) })),
        now,
      );
    } catch (error) {
      if (!(error instanceof LabelSetsError)) throw error;
      return this.toRaws(parsed.map((each) => refuseLabels(each, error)));
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
      admitAt: admissionTime(submission.definition.runAt, now, config.laterThreshold),
      refusal,
    }));
  }
}

/** Refuses a submission that needs a label set beyond the quota of its tenant. */
function refuseLabels(parsed: Parsed, error: LabelSetsError): Parsed {
  const { job, submission } = parsed;
  if (!submission || !error.refuses({ tenant: job.tenant, ...namesOf(submission) })) return parsed;
  const { code, message } = error;
  return { job, submission: null, refusal: { code, message } };
}

function namesOf({ definition: { queue, needs } }: ParsedSubmission) {
  return { queue, needs };
}

/** Stands in for a submission that cannot be parsed, so that its failure has a row in history. */
const PLACEHOLDER: ParsedSubmission = parseSubmission(
  { task: 'invalid' },
  { now: 0, maxPayload: 1024, maxDepth: 8, jobTimeout: 1, maxJobTimeout: 1 },
);
