import { EarliestTimer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import { addAll } from '../core/long-lists.js';
import { Loop, logFailure } from '../core/loop.js';
import { bisect } from '../store/bisect.js';
import { type ClaimIntent, claimJobs, claimKnownJobs } from '../store/claim-jobs.js';
import type { Work } from '../store/claims.js';
import type { StoredDefinition } from '../store/job-row.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { type BucketState, saveBuckets } from '../store/queues.js';
import { type Claimed, handOver, MAX_ANSWER_KIB } from './handing-over.js';
import { type ClaimFacts, factsOf, factsOfNew, type JobFacts, Running } from './running.js';
import type { Poll, WorkerSession } from './session.js';
import type { Entry } from './shelf.js';
import type { LeaderState } from './state.js';
import type { Walk } from './walk.js';

/** Jobs claimed in one statement: enough to spread its cost, few enough to answer within milliseconds. */
const MAX_BATCH = 1_000;
/** The same in size: from so many kibibytes on a statement takes no further job. */
const MAX_CLAIM_KIB = 4 * 1_024;

interface Intent extends ClaimIntent {
  readonly entry: Entry;
  readonly poll: Poll;
  /** Whether it is decided what became of it. */
  isSettled: boolean;
}

function intend(entry: Entry, poll: Poll): Intent {
  return { id: entry.id, fence: entry.fence, worker: poll.session.id, entry, poll, isSettled: false };
}

/** A poll that asks for jobs, and its way round the queues. */
interface Asker {
  readonly poll: Poll;
  readonly walk: Walk;
  readonly canRun: (needs: number) => boolean;
  room: number;
  /** What its answer still takes, in kibibytes; the last job may go beyond. */
  roomKib: number;
}

function isOpen(session: WorkerSession, now: number): boolean {
  return session.bucket === null || session.bucket.isOpen(now);
}

/**
 * Brings due jobs and waiting workers together. A job is chosen in memory, claimed in the database, and only
 * what was claimed is handed over, after the commit.
 */
export class Claiming {
  private readonly loop: Loop;
  /** Fires when a worker's own rate allows its next job; on the steady clock. */
  private readonly rateTimer: EarliestTimer;

  constructor(
    private readonly state: LeaderState,
    private readonly parts: {
      onExpired(): void;
      onDrained(): void;
      /** Claims were made for sessions that have ended meanwhile; nobody was handed them. */
      onOrphans(orphans: readonly Running[]): void;
    },
  ) {
    this.loop = new Loop({
      name: 'claiming',
      everyMs: 60_000,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'jobs could not be claimed'),
    });
    const { clock } = state;
    const steady = { at: (moment: number, run: () => void) => clock.after(moment - clock.steady(), run) };
    this.rateTimer = new EarliestTimer(steady, () => this.loop.wake());
    state.wakeClaiming = () => this.loop.wake();
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    this.rateTimer.stop();
    return this.loop.stop();
  }

  /** Claims until there is no work for any waiting worker, or no worker for any work. */
  async runOnce(): Promise<void> {
    while (!this.state.term.over) {
      const intents = this.choose();
      if (intents.length === 0) return;
      this.parts.onDrained();
      await this.claim(intents);
    }
  }

  /** Polls take one job each in turn, so that work spreads evenly over the workers. */
  private choose(): Intent[] {
    const { state } = this;
    if (state.paused) return [];
    const now = state.clock.steady();
    const intents: Intent[] = [];
    const askers = this.askers(now);
    let sizeKib = 0;
    const isFull = () => intents.length >= MAX_BATCH || sizeKib >= MAX_CLAIM_KIB;
    for (let before = -1; before < intents.length && !isFull(); ) {
      before = intents.length;
      for (const asker of askers) {
        if (asker.room === 0 || isFull()) continue;
        const entry = isOpen(asker.poll.session, now) ? this.nextFor(asker, now) : undefined;
        if (entry) {
          intents.push(intend(entry, asker.poll));
          sizeKib += entry.sizeKib;
          asker.roomKib -= entry.sizeKib;
        }
        asker.room = entry && asker.roomKib > 0 ? asker.room - 1 : 0;
      }
    }
    return intents;
  }

  private askers(now: number): Asker[] {
    const { shares, fitness, sessions } = this.state;
    const askers: Asker[] = [];
    for (const session of sessions.values()) {
      if (session.draining || session.polls.size === 0) continue;
      if (!isOpen(session, now)) {
        this.rateTimer.arm(session.bucket!.opensAt);
        continue;
      }
      const canRun = (needs: number) => fitness.fits(session, needs);
      for (const poll of session.polls) {
        if (!poll.settled && !poll.reserved)
          askers.push({ poll, room: poll.max, roomKib: MAX_ANSWER_KIB, walk: shares.walk(session), canRun });
      }
    }
    return askers;
  }

  /** The next job for a worker; tenants and queues take turns, inside a queue priority decides. */
  private nextFor({ poll, walk, canRun }: Asker, now: number): Entry | undefined {
    const { backlog, turns, clock } = this.state;
    for (;;) {
      const entry = backlog.take(walk, canRun, now);
      if (!entry) return undefined;
      if (entry.fence === 1 && entry.startBefore !== null && entry.startBefore <= clock.now()) {
        backlog.putBack(entry);
        this.parts.onExpired();
        continue;
      }
      // Nobody has the turn of a job that is in the backlog.
      if (!turns.isTaken(entry.id)) {
        poll.session.bucket?.draw(now);
        return entry;
      }
      backlog.putBack(entry);
      this.state.doubt(`job ${entry.id} was chosen in the middle of another's turn`);
      return undefined;
    }
  }

  private async claim(intents: readonly Intent[]): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    const refused: Intent[] = [];
    // Whoever else gave these polls a job meanwhile would settle them, and what is claimed here would reach nobody.
    for (const { poll } of intents) poll.reserved = true;
    try {
      await state.write(() =>
        bisect(
          intents,
          async (part) => {
            const find = await this.write(part, now);
            addAll(refused, this.handOver(part, find, now));
            return part;
          },
          (intent, error) => {
            const { entry } = intent;
            intent.isSettled = true;
            state.backlog.putBack(entry);
            state.turns.wake(entry.id);
            // Nobody can start it during this term; the next one will find it in the table.
            state.log.error({ job: entry.id, error: messageOf(error) }, 'a job cannot be claimed');
          },
        ),
      );
    } catch (error) {
      // The server refused the statement: nothing of it was claimed, so all of it waits again.
      const left = intents.filter((intent) => !intent.isSettled);
      for (const { entry } of left) state.backlog.putBack(entry);
      await state.admit(left.map(({ entry }) => entry));
      for (const { id } of left) state.turns.wake(id);
      throw error;
    } finally {
      for (const { poll } of intents) poll.reserved = false;
      await state.follow(refused.map(({ entry }) => entry.id));
    }
  }

  /** Claims the jobs; answers with the way to find what was claimed. */
  private write(intents: readonly Intent[], now: number): Promise<Found> {
    const lateness = new Map<string, number[]>();
    for (const { entry } of intents) {
      if (entry.fence > 1) continue;
      let counts = lateness.get(entry.tenant);
      if (!counts) {
        counts = emptyHistogram();
        lateness.set(entry.tenant, counts);
      }
      counts[bucketOf(Math.max(0, now - entry.runAt))]! += 1;
    }
    const { hot, term } = this.state;
    const claim = intents.every(({ entry }) => entry.row) ? claimFromMemory : claimFromTable;
    const buckets = this.bucketsOf(intents);
    if (buckets.queues.size === 0 && buckets.tenants.size === 0)
      return claim(hot, term, intents, now, lateness);
    return leaderTransaction(hot, term, async (db) => {
      await saveBuckets(db, term, buckets);
      return claim(db, term, intents, now, lateness);
    });
  }

  /** The buckets that these jobs have drawn on. */
  private bucketsOf(intents: readonly Intent[]): BucketState {
    const { shares, clock } = this.state;
    const queues = new Map<number, number>();
    const tenants = new Map<string, number>();
    for (const { entry } of intents) {
      const line = shares.line(entry.queue);
      if (line.bucket) queues.set(entry.queue, line.bucket.fullAt(clock));
      if (line.tenant.bucket) tenants.set(entry.tenant, line.tenant.bucket.fullAt(clock));
    }
    return { queues, tenants };
  }

  /** Gives out what was claimed; answers with the rest, which waits in another way than memory thought. */
  private handOver(intents: readonly Intent[], find: Found, now: number): Intent[] {
    const { state } = this;
    const claimed: Claimed[] = [];
    const refused: Intent[] = [];
    const { epoch } = state.term;
    const since = state.clock.steady();
    let claim: ClaimFacts | undefined;
    for (const intent of intents) intent.isSettled = true;
    for (const intent of intents) {
      const { entry, poll, worker } = intent;
      if (claim?.worker !== worker) claim = { worker, epoch, claimedAt: now, since };
      const found = find(entry);
      if (found) {
        claimed.push({ running: new Running(entry, found.facts, claim), work: found.work, poll });
        state.backlog.claimed(entry);
      } else {
        state.backlog.putBack(entry);
        refused.push(intent);
      }
    }
    const orphans = handOver(state, claimed);
    for (const { id } of intents) state.turns.wake(id);
    if (orphans.length > 0) this.parts.onOrphans(orphans);
    return refused;
  }
}

/** What a claim brought of a job; null when it was not to be had. */
type Found = (entry: Entry) => { readonly facts: JobFacts; readonly work: Work } | null;

type Claim = (...args: Parameters<typeof claimJobs>) => Promise<Found>;

/** This process stored every one of them itself, so the table need only say whether each can be claimed. */
const claimFromMemory: Claim = async (...args) => {
  const refused = await claimKnownJobs(...args);
  let last: { readonly definition: StoredDefinition; readonly facts: JobFacts } | undefined;
  return (entry) => {
    if (refused.has(entry.id)) return null;
    const { definition, payload } = entry.row!;
    if (last?.definition !== definition) last = { definition, facts: factsOfNew(definition) };
    return { facts: last.facts, work: { payload, target: definition.target } };
  };
};

const claimFromTable: Claim = async (...args) => {
  const rows = new Map((await claimJobs(...args)).map((row) => [row.id, row]));
  return (entry) => {
    const row = rows.get(entry.id);
    return row ? { facts: factsOf(row), work: { payload: row.payload, target: row.target } } : null;
  };
};
