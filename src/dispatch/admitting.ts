import { messageOf, PunctualError } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { type ParsedSubmission, parseSubmission } from '../core/submission.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { type JobRow, toRow } from '../store/job-row.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { Names } from '../store/names.js';
import { admitJobs, parseLater, readToAdmit, type ToAdmit, unchanged } from '../store/place-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import { registerKeys } from '../store/submit-jobs.js';
import { admissionTime } from './admission-time.js';
import type { Reading } from './reading.js';
import type { LeaderState } from './state.js';

const MAX_BATCH = 1_000;
const EVERY_MS = 60_000;

/** A raw submission, made inside a caller's transaction, and what it turned out to be. */
interface Raw {
  readonly id: string;
  readonly row: JobRow;
  readonly held: boolean;
  readonly admitAt: number | null;
  /** Why it cannot run. */
  readonly refusal: PunctualError | null;
}

/** Brings jobs of `later` into the live table when their time comes near. */
export class Admitting {
  private readonly loop: Loop;
  private readonly names: Names;
  private passing: Promise<void> = Promise.resolve();

  constructor(
    private readonly state: LeaderState,
    private readonly reading: Reading,
    private readonly onStartBefore: (at: number | null) => void,
  ) {
    this.names = new Names(state.hot);
    this.loop = new Loop({
      name: 'admitting',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: (loop, error) =>
        state.log.warn({ loop, error: messageOf(error) }, 'jobs could not be admitted'),
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
    this.passing = this.passing.catch(() => undefined).then(() => this.pass());
    return this.passing;
  }

  private async pass(): Promise<void> {
    const { state } = this;
    for (;;) {
      const due = await readToAdmit(state.hot, state.clock.now(), MAX_BATCH);
      // Somebody who has the turn of a job is about to decide what becomes of it.
      const mine = due.filter((job) => state.tryTurn(job.id));
      if (mine.length === 0) return;
      let admitted: readonly Waiting[];
      try {
        admitted = await this.admit(mine);
      } finally {
        for (const job of mine) state.turns.give(job.id);
      }
      await state.admit(admitted);
      this.reading.wake();
      if (due.length < MAX_BATCH) return;
    }
  }

  private async admit(due: readonly ToAdmit[]): Promise<readonly Waiting[]> {
    const { state } = this;
    const raws = await this.parse(due.filter((job) => job.submission !== null));
    const ready = due.filter((job) => job.submission === null).map((job) => job.id);
    ready.push(...(await this.settle(raws)));
    return state.write(() => admitJobs(state.hot, state.term, ready.map(unchanged)));
  }

  private async parse(jobs: readonly ToAdmit[]): Promise<Raw[]> {
    const { config, clock } = this.state;
    const now = clock.now();
    const parsed = jobs.map((job) => {
      try {
        return {
          job,
          submission: parseSubmission(JSON.parse(job.submission!), { ...config, now: job.createdAt }),
          refusal: null,
        };
      } catch (error) {
        const refusal =
          error instanceof PunctualError ? error : new PunctualError('INVALID_REQUEST', messageOf(error));
        return { job, submission: PLACEHOLDER, refusal };
      }
    });
    const ids = await this.names.resolve(
      parsed.map(({ job, submission }) => ({
        tenant: job.tenant,
        queue: submission.definition.queue,
        needs: submission.definition.needs,
        runAt: submission.definition.runAt,
      })),
      now,
    );
    return parsed.map(({ job, submission, refusal }, i) => ({
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

  /** Registers keys, ends what cannot run, keeps what is not due; answers with what may be admitted now. */
  private async settle(raws: readonly Raw[]): Promise<string[]> {
    if (raws.length === 0) return [];
    const { state } = this;
    const now = state.clock.now();
    const { ended, ready } = await state.write(() =>
      leaderTransaction(state.hot, state.term, async (db) => {
        const valid = raws.filter((raw) => raw.refusal === null);
        const winners = await registerKeys(
          db,
          valid.map((raw) => raw.row),
        );
        const duplicates = new Map(
          valid.flatMap((raw, i) => (winners[i] === raw.id ? [] : [[raw.id, winners[i]!] as const])),
        );
        const ended = raws.filter((raw) => raw.refusal !== null || duplicates.has(raw.id));
        const stays = (raw: Raw) => raw.held || raw.admitAt !== null;
        await parseLater(
          db,
          state.term,
          raws.map((raw) => ({ row: raw.row, held: raw.held, admitAt: raw.admitAt ?? now })),
        );
        if (ended.length > 0) {
          await endWaitingJobs(
            db,
            state.term,
            'later',
            ended.map((raw) => refuse(raw, duplicates.get(raw.id))),
            now,
          );
        }
        return { ended, ready: raws.filter((raw) => !ended.includes(raw) && !stays(raw)) };
      }),
    );
    for (const raw of ended) state.jobEnded(raw.id);
    for (const raw of raws) this.onStartBefore(raw.row.definition.start_before);
    return ready.map((raw) => raw.id);
  }
}

function refuse(raw: Raw, winner: string | undefined) {
  if (winner !== undefined) {
    const error = { code: 'DUPLICATE_KEY', message: `The key belongs to job ${winner}.` };
    return { id: raw.id, state: 'skipped' as const, error: JSON.stringify(error) };
  }
  const error = { code: raw.refusal!.code, message: raw.refusal!.message };
  return { id: raw.id, state: 'failed' as const, error: JSON.stringify(error) };
}

/** Stands in for a submission that cannot be read, so that its failure has a row in history. */
const PLACEHOLDER: ParsedSubmission = parseSubmission(
  { task: 'invalid' },
  { now: 0, maxPayload: 1024, maxDepth: 8, jobTimeout: 1, maxJobTimeout: 1 },
);
