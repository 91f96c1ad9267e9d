import { messageOf } from '../core/errors.js';
import { addAll } from '../core/long-lists.js';
import { Loop, logFailure } from '../core/loop.js';
import { SerialQueue } from '../core/serial-queue.js';
import { Batcher } from '../store/batcher.js';
import { bisect } from '../store/bisect.js';
import { isDatabaseBusy, isDataError } from '../store/database.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { leaderTransaction } from '../store/leader-statement.js';
import {
  admitJobs,
  measureToAdmit,
  parseLater,
  readToAdmit,
  type ToAdmit,
  unchanged,
} from '../store/place-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import { registerKeys } from '../store/submit-jobs.js';
import type { BacklogReader } from './backlog-reader.js';
import type { LeaderState } from './leader-state.js';
import { SetAside } from './set-aside.js';
import { type Raw, SubmissionParser } from './submission-parser.js';

const EVERY_MS = 60_000;
/** The largest batch that is moved in one transaction. Texts of submissions are read in portions of the same size. */
const LIMITS = { items: 1_000, bytes: 4 * 1024 * 1024 };
/** Jobs whose ids and sizes are read ahead of being admitted. */
const MAX_CANDIDATES = 5_000;
/** After this time the candidates are read again, so that new ones are ordered fairly among them. */
const LOOK_AGAIN_MS = 500;
/** Jobs that one pass may skip. */
const MAX_SKIPPED = 1_000;

/** Moves jobs from `later` to the live table when their admission time has come. */
export class Admitter {
  private readonly loop: Loop;
  private readonly parser: SubmissionParser;
  private readonly passes = new SerialQueue();
  private readonly batcher = new Batcher<ToAdmit>(LIMITS, (job) => job.bytes);
  private readonly aside: SetAside;

  constructor(
    private readonly state: LeaderState,
    private readonly backlogReader: BacklogReader,
    private readonly onStartBefore: (at: number | null) => void,
  ) {
    this.parser = new SubmissionParser(state);
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

  /** Admits all jobs whose time has come; waits for a pass that is running. */
  runOnce(): Promise<void> {
    return this.passes.run(() => this.pass());
  }

  /** Admits one unparsed submission ahead of all others. */
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
          // Whoever holds the turn of a job is about to change it, so this pass leaves it alone.
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

  /** Admits jobs whose turns the caller has taken, and releases the turns. */
  private async admitInTurn(jobs: readonly ToAdmit[]): Promise<void> {
    const { state } = this;
    if (jobs.length === 0) return;
    let admitted: readonly Waiting[];
    try {
      admitted = await this.admit(jobs);
    } finally {
      for (const job of jobs) state.turns.release(job.id);
    }
    await state.admit(admitted);
    this.backlogReader.wake();
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
      addAll(ready, await this.settle(await this.parser.parse(portion)));
      from += portion.length;
    }
    if (ready.length === 0) return [];
    return state.write(() => admitJobs(state.hot, state.term, ready.map(unchanged)));
  }

  /** Fails a job whose data cannot be stored; sets one aside that met a timeout or a lock, to be tried again later. */
  private async cannotAdmit(job: ToAdmit, error: unknown): Promise<void> {
    const { state } = this;
    const message = `The job could not be stored: ${messageOf(error)}`;
    state.log.error({ job: job.id, tenant: job.tenant, error: messageOf(error) }, 'a job cannot be admitted');
    if (isDataError(error) && state.tryTurn(job.id)) {
      try {
        await this.settle(await this.parser.refused(job, { code: 'UNSTORABLE', message }));
        return;
      } catch (failure) {
        if (!isDataError(failure) && !isDatabaseBusy(failure)) throw failure;
      } finally {
        state.turns.release(job.id);
      }
    }
    this.aside.add(job.id);
  }

  /** Registers keys, ends jobs that cannot run, keeps those that are not due; answers with those to admit now. */
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

function refuse(raw: Raw, winner: string | undefined) {
  if (winner !== undefined) {
    const error = { code: 'DUPLICATE_KEY', message: `The key belongs to job ${winner}.` };
    return { id: raw.id, state: 'skipped' as const, error: JSON.stringify(error) };
  }
  return { id: raw.id, state: 'failed' as const, error: JSON.stringify(raw.refusal) };
}

/**
 * Jobs ordered fairly by bytes: each comes after as many bytes as its own tenant has before it. A few small jobs thus
 * do not wait for many large ones of another tenant; the jobs of one tenant keep their order.
 */
export function inFairOrder<T extends Pick<ToAdmit, 'tenant' | 'bytes'>>(jobs: readonly T[]): T[] {
  const bytesOf = new Map<string, number>();
  const weighed = jobs.map((job) => {
    const bytesBefore = bytesOf.get(job.tenant) ?? 0;
    bytesOf.set(job.tenant, bytesBefore + job.bytes);
    return { job, bytesBefore };
  });
  return weighed.sort((a, b) => a.bytesBefore - b.bytesBefore).map(({ job }) => job);
}
