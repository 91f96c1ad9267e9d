import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf, PunctualError } from '../core/errors.js';
import { addAll } from '../core/long-lists.js';
import { Loop, logFailure } from '../core/loop.js';
import { SerialQueue } from '../core/serial-queue.js';
import { type ParsedSubmission, parseSubmission, readSubmissionText } from '../core/submission.js';
import { Batcher } from '../store/batcher.js';
import { bisect } from '../store/bisect.js';
import { isDatabaseBusy, isDataError } from '../store/database.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { type JobRow, toRow } from '../store/job-row.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { LabelSetsError, Names, type Resolved } from '../store/names.js';
import {
  admitJobs,
  measureToAdmit,
  parseLater,
  readSubmissions,
  readToAdmit,
  type ToAdmit,
  unchanged,
} from '../store/place-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import { registerKeys } from '../store/submit-jobs.js';
import { admissionTime } from './admission-time.js';
import { inFairOrder } from './fair-order.js';
import type { Reading } from './reading.js';
import { SetAside } from './set-aside.js';
import type { LeaderState } from './state.js';

const EVERY_MS = 60_000;
/** What is moved at once. Texts of submissions are read in portions of the same size. */
const LIMITS = { items: 1_000, bytes: 4 * 1024 * 1024 };
/** Jobs that are known by name and size while their turn comes. */
const MAX_CANDIDATES = 5_000;
/** After this time it is looked for new ones, which take turns with those that are there. */
const LOOK_AGAIN_MS = 500;
/** Jobs that one pass may pass over. */
const MAX_SKIPPED = 1_000;
/** How long parsing may hold the event loop before others get their turn. */
const PARSE_MS = 10;
/** Escapes and blanks make a submission longer than what is stored of it, but not without bound. */
const TEXT_PER_PAYLOAD = 4;
const TEXT_BESIDE_PAYLOAD = 64 * 1024;

/** Why a job ends without having run. */
interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** A raw submission, made inside a caller's transaction, and what it turned out to be. */
interface Raw {
  readonly id: string;
  readonly row: JobRow;
  readonly held: boolean;
  readonly admitAt: number | null;
  /** Why it cannot run. */
  readonly refusal: Refusal | null;
}

/** A submission that was read, or the reason why it cannot be. */
type Parsed = { readonly job: ToAdmit } & (
  | { readonly submission: ParsedSubmission; readonly refusal: null }
  | { readonly submission: null; readonly refusal: Refusal }
);

/** Brings jobs of `later` into the live table when their time comes near. */
export class Admitting {
  private readonly loop: Loop;
  private readonly names: Names;
  private readonly passes = new SerialQueue();
  private readonly batcher = new Batcher<ToAdmit>(LIMITS, (job) => job.bytes);
  private readonly aside: SetAside;

  constructor(
    private readonly state: LeaderState,
    private readonly reading: Reading,
    private readonly onStartBefore: (at: number | null) => void,
  ) {
    this.names = new Names(state.hot, state.config);
    this.aside = new SetAside(state.clock);
    this.loop = new Loop({
      name: 'admitting',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'jobs could not be admitted'),
    });
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  wake(): void {
    this.loop.wake();
  }

  /** Admits everything whose time has come, after a pass that runs already. */
  runOnce(): Promise<void> {
    return this.passes.run(() => this.pass());
  }

  /** Admits one submission that nobody has read yet, whatever lies before it. */
  async admitNow(job: Omit<ToAdmit, 'bytes'>): Promise<void> {
    await this.state.turn(job.id);
    const one = [{ ...job, bytes: 0 }];
    await bisect(
      one,
      (jobs) => this.admitInTurn(jobs).then(() => []),
      (job, error) => this.cannotAdmit(job, error),
    );
  }

  private async pass(): Promise<void> {
    const { state } = this;
    const aside = this.aside.current();
    const skipped = new Set(aside);
    while (skipped.size - aside.length < MAX_SKIPPED) {
      const due = await readToAdmit(state.reads, state.clock.now(), MAX_CANDIDATES, [...skipped]);
      const lookAgainAt = performance.now() + LOOK_AGAIN_MS;
      const done = await this.batcher.run(
        inFairOrder(due),
        async (jobs) => {
          const mine = jobs.filter((job) => state.tryTurn(job.id));
          // Somebody who has the turn of a job is about to decide what becomes of it.
          const taken = new Set(mine);
          for (const job of jobs) if (!taken.has(job)) skipped.add(job.id);
          await this.admitInTurn(mine);
        },
        async (job, error) => {
          skipped.add(job.id);
          await this.cannotAdmit(job, error);
        },
        () => performance.now() < lookAgainAt,
      );
      if (done === due.length && due.length < MAX_CANDIDATES) return;
    }
  }

  /** Admits jobs whose turn was taken, and gives the turns back. */
  private async admitInTurn(jobs: readonly ToAdmit[]): Promise<void> {
    const { state } = this;
    if (jobs.length === 0) return;
    let admitted: readonly Waiting[];
    try {
      admitted = await this.admit(jobs);
    } finally {
      for (const job of jobs) state.turns.give(job.id);
    }
    await state.admit(admitted);
    this.reading.wake();
  }

  private async admit(jobs: readonly ToAdmit[]): Promise<readonly Waiting[]> {
    const { state } = this;
    const measured = await measureToAdmit(
      state.hot,
      state.clock.now(),
      jobs.map((job) => job.id),
    );
    const ready = jobs.filter((job) => measured.get(job.id) === null).map((job) => job.id);
    const unread = jobs
      .filter((job) => typeof measured.get(job.id) === 'number')
      .map((job) => ({ ...job, bytes: measured.get(job.id)! }));
    for (let from = 0; from < unread.length; ) {
      const portion = unread.slice(from, from + this.batcher.count(unread, from));
      addAll(ready, await this.settle(await this.toRaws(await this.read(portion))));
      from += portion.length;
    }
    if (ready.length === 0) return [];
    return state.write(() => admitJobs(state.hot, state.term, ready.map(unchanged)));
  }

  /** Reads and parses submissions, but for those that are far too large to be any. */
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
      if (text !== undefined) parsed.push(this.parse(job, text));
      else if (job.bytes > maxBytes) {
        const message = `The submission has ${job.bytes} bytes; more than ${maxBytes} are not read.`;
        parsed.push({ job, submission: null, refusal: { code: 'PAYLOAD_TOO_LARGE', message } });
      }
      if (performance.now() - pausedAt < PARSE_MS) continue;
      await nextTurn();
      pausedAt = performance.now();
    }
    return parsed;
  }

  private parse(job: ToAdmit, text: string): Parsed {
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

  /** A job that cannot be stored where it belongs fails; one for which the time did not suffice is tried again later. */
  private async cannotAdmit(job: ToAdmit, error: unknown): Promise<void> {
    const { state } = this;
    const message = `The job could not be stored: ${messageOf(error)}`;
    state.log.error({ job: job.id, tenant: job.tenant, error: messageOf(error) }, 'a job cannot be admitted');
    if (isDataError(error) && state.tryTurn(job.id)) {
      try {
        const raws = await this.toRaws([{ job, submission: null, refusal: { code: 'UNSTORABLE', message } }]);
        await this.settle(raws);
        return;
      } catch (failure) {
        if (!isDataError(failure) && !isDatabaseBusy(failure)) throw failure;
      } finally {
        state.turns.give(job.id);
      }
    }
    this.aside.add(job.id);
  }

  /** Registers keys, ends what cannot run, keeps what is not due; answers with what may be admitted now. */
  private async settle(raws: readonly Raw[]): Promise<string[]> {
    if (raws.length === 0) return [];
    const { state } = this;
    const now = state.clock.now();
    const ended = await state.writeEnds(() =>
      leaderTransaction(state.hot, state.term, async (db) => {
        const valid = raws.filter((raw) => raw.refusal === null);
        const winners = await registerKeys(
          db,
          valid.map((raw) => raw.row),
        );
        const duplicates = new Map(
          valid.flatMap((raw, i) => (winners[i] === raw.id ? [] : [[raw.id, winners[i]!] as const])),
        );
        await parseLater(
          db,
          state.term,
          raws.map((raw) => ({ row: raw.row, held: raw.held, admitAt: raw.admitAt ?? now })),
        );
        const refused = raws.filter((raw) => raw.refusal !== null || duplicates.has(raw.id));
        if (refused.length === 0) return [];
        const ends = refused.map((raw) => refuse(raw, duplicates.get(raw.id)));
        return endWaitingJobs(db, state.term, 'later', ends, now);
      }),
    );
    for (const raw of raws) this.onStartBefore(raw.row.definition.start_before);
    const gone = new Set(ended.map(({ id }) => id));
    const isReady = (raw: Raw) => raw.refusal === null && !raw.held && raw.admitAt === null;
    return raws.filter((raw) => isReady(raw) && !gone.has(raw.id)).map((raw) => raw.id);
  }
}

/** A submission that needs a label set beyond the quota of its tenant cannot run. */
function refuseLabels(parsed: Parsed, error: LabelSetsError): Parsed {
  const { job, submission } = parsed;
  if (!submission || !error.refuses({ tenant: job.tenant, ...namesOf(submission) })) return parsed;
  const { code, message } = error;
  return { job, submission: null, refusal: { code, message } };
}

function namesOf({ definition: { queue, needs } }: ParsedSubmission) {
  return { queue, needs };
}

function refuse(raw: Raw, winner: string | undefined) {
  if (winner !== undefined) {
    const error = { code: 'DUPLICATE_KEY', message: `The key belongs to job ${winner}.` };
    return { id: raw.id, state: 'skipped' as const, error: JSON.stringify(error) };
  }
  return { id: raw.id, state: 'failed' as const, error: JSON.stringify(raw.refusal) };
}

/** Stands in for a submission that cannot be read, so that its failure has a row in history. */
const PLACEHOLDER: ParsedSubmission = parseSubmission(
  { task: 'invalid' },
  { now: 0, maxPayload: 1024, maxDepth: 8, jobTimeout: 1, maxJobTimeout: 1 },
);
