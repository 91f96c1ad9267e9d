import { messageOf } from '../core/errors.js';
import { addAll } from '../core/long-lists.js';
import { Loop, logFailure } from '../core/loop.js';
import { SerialQueue } from '../core/serial-queue.js';
import { Batcher } from '../store/batcher.js';
import { bisect } from '../store/bisect.js';
import { isDatabaseBusy, isDataError } from '../store/database.js';
import { admitJobs, measureToAdmit, readToAdmit, type ToAdmit, unchanged } from '../store/place-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import type { BacklogReader } from './backlog-reader.js';
import type { LeaderState } from './leader-state.js';
import { SetAside } from './set-aside.js';
import { type Settled, Settler, UNSETTLED } from './settler.js';
import { SubmissionParser } from './submission-parser.js';

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
  private readonly settler: Settler;
  private readonly passes = new SerialQueue();
  private readonly batcher = new Batcher<ToAdmit>(LIMITS, (job) => job.bytes);
  private readonly aside: SetAside;

  constructor(
    private readonly state: LeaderState,
    private readonly backlogReader: BacklogReader,
    onStartBefore: (at: number | null) => void,
  ) {
    this.parser = new SubmissionParser(state);
    this.settler = new Settler(state, onStartBefore);
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
    const { state } = this;
    for (let busy: readonly string[] = [job.id]; busy.length > 0; ) {
      // No turn is held here, so whoever has the turn of the job that it replaces can go on.
      for (const id of busy) await state.turns.untilFree(id);
      await state.turn(job.id);
      busy = [];
      await bisect(
        [{ ...job, bytes: 0 }],
        async (jobs) => {
          ({ busy } = await this.admitInTurn(jobs));
          return [];
        },
        (job, error) => this.cannotAdmit(job, error),
      );
    }
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
          for (const id of (await this.admitInTurn(mine)).left) skipped.add(id);
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

  /** Admits jobs whose turns the caller has taken, and releases the turns; answers with what was left for later. */
  private async admitInTurn(jobs: readonly ToAdmit[]): Promise<Left> {
    const { state } = this;
    if (jobs.length === 0) return UNSETTLED;
    const replaced = new Set<string>();
    let admitted: readonly Waiting[] = [];
    let settled: Settled;
    try {
      settled = await this.settle(jobs, replaced);
      const ready = settled.ready.map(unchanged);
      if (ready.length > 0) admitted = await state.write(() => admitJobs(state.hot, state.term, ready));
    } finally {
      for (const job of jobs) state.turns.release(job.id);
      // Also after a failure, because what was replaced before it is in the live table already.
      await state.follow([...replaced]);
    }
    await state.admitNew(admitted);
    this.backlogReader.wake();
    return settled;
  }

  /** Settles the unread submissions among the jobs, in portions; notes in `replaced` which jobs took what others said. */
  private async settle(jobs: readonly ToAdmit[], replaced: Set<string>): Promise<Settled> {
    const { state } = this;
    const mine = new Set(jobs.map((job) => job.id));
    const measured = await measureToAdmit(state.hot, state.clock.now(), [...mine]);
    const ready = new Set([...mine].filter((id) => measured.get(id)?.bytes === null));
    const unread = jobs.flatMap((job) => {
      const { bytes = null, saidAt = null } = measured.get(job.id) ?? {};
      return bytes === null ? [] : [{ ...job, bytes, saidAt }];
    });
    const busy: string[] = [];
    const left: string[] = [];
    for (let from = 0; from < unread.length; ) {
      const portion = unread.slice(from, from + this.batcher.count(unread, from));
      const settled = await this.settler.settle(await this.parser.parse(portion), mine);
      for (const id of settled.ready) ready.add(id);
      for (const id of settled.replaced) {
        // It may be due at another time than when it was read.
        ready.delete(id);
        replaced.add(id);
      }
      addAll(busy, settled.busy);
      addAll(left, settled.left);
      from += portion.length;
    }
    return { ready: [...ready], replaced: [...replaced], busy, left };
  }

  /** Fails a job whose data cannot be stored; sets one aside that met a timeout or a lock, to be tried again later. */
  private async cannotAdmit(job: ToAdmit, error: unknown): Promise<void> {
    const { state } = this;
    const message = `The job could not be stored: ${messageOf(error)}`;
    state.log.error({ job: job.id, tenant: job.tenant, error: messageOf(error) }, 'a job cannot be admitted');
    if (isDataError(error) && state.tryTurn(job.id)) {
      try {
        const raws = await this.parser.refused(job, { code: 'UNSTORABLE', message });
        await this.settler.settle(raws, new Set([job.id]));
        return;
      } catch (failure) {
        if (!isDataError(failure) && !isDatabaseBusy(failure)) throw failure;
      } finally {
        state.turns.release(job.id);
      }
    }
    this.aside.add(job.id);
  }
}

/** What could not be admitted because others had the turns of jobs. */
type Left = Pick<Settled, 'busy' | 'left'>;

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
