import { EarliestTimer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import { addAll } from '../core/long-lists.js';
import { Loop, logFailure } from '../core/loop.js';
import { bisect } from '../store/bisect.js';
import { type ClaimCounts, type ClaimIntent, claimJobs, claimKnownJobs } from '../store/claim-jobs.js';
import type { Queryable } from '../store/database.js';
import type { StoredDefinition } from '../store/job-row.js';
import { leaderTransaction, type TermKey } from '../store/leader-statement.js';
import { type BucketMark, type BucketState, saveBuckets } from '../store/queues.js';
import type { Spare } from './gang-board.js';
import { type Claimed, handOver, MAX_ANSWER_KIB } from './hand-over.js';
import type { LeaderState } from './leader-state.js';
import type { Round } from './round.js';
import { type ClaimFacts, factsOf, factsOfNew, type JobFacts, Running } from './running.js';
import type { Entry } from './segment.js';
import { isFree, type Poll, type WorkerSession } from './worker-session.js';

/** Jobs claimed in one statement: enough to spread its cost, few enough to answer within milliseconds. */
const MAX_BATCH = 1_000;
/** The size in kibibytes from which on a statement takes no further job. */
const MAX_CLAIM_KIB = 4 * 1_024;

/** The counts of claims while they are being made. */
type ExpectedCounts = { -readonly [K in keyof ClaimCounts]: ClaimCounts[K] } & { lateness: number[] };

interface Intent extends ClaimIntent {
  readonly entry: Entry;
  readonly poll: Poll;
  /** Whether its outcome is known. */
  isSettled: boolean;
}

function intend(entry: Entry, poll: Poll): Intent {
  return { id: entry.id, fence: entry.fence, worker: poll.session.id, entry, poll, isSettled: false };
}

/** A poll that can take jobs, with its pass over the queues. */
interface OpenPoll {
  readonly poll: Poll;
  readonly round: Round;
  readonly canRun: (needs: number) => boolean;
  room: number;
  /** Room left in its answer, in kibibytes; the last job may exceed it. */
  roomKib: number;
  /** The slots that batches leave of its worker's pool; missing if they hold none there. */
  readonly spare: Spare | undefined;
}

function isOpen(session: WorkerSession, now: number): boolean {
  return session.bucket === null || session.bucket.isOpen(now);
}

/**
 * Assigns due jobs to waiting workers. A job is chosen in memory and claimed in the database; only claimed jobs are
 * handed over, and only after the commit.
 */
export class Claimer {
  private readonly loop: Loop;
  /** Fires when a worker's own rate allows its next job; on the steady clock. */
  private readonly rateTimer: EarliestTimer;
  /** The claim that is under way, or the last one. */
  private claiming: Promise<void> = Promise.resolve();

  constructor(
    private readonly state: LeaderState,
    private readonly parts: {
      onExpired(): void;
      onDrained(): void;
      /** Called with claims whose sessions ended before the hand-over. */
      onOrphans(orphans: readonly Running[]): void;
      /** Starts a batch, if one can start now; answers whether one could. */
      startGang(): Promise<boolean>;
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

  /** Claims until no waiting worker can get a job. */
  async runOnce(): Promise<void> {
    while (!this.state.term.over) {
      if (this.state.gangs.isWaiting && (await this.parts.startGang())) continue;
      const intents = this.choose();
      if (intents.length === 0) return;
      this.parts.onDrained();
      this.claiming = this.claim(intents);
      await this.claiming;
    }
  }

  /** Resolves when the claim that is under way, if one is, is made or has failed. */
  claimsMade(): Promise<void> {
    return this.claiming.catch(() => undefined);
  }

  /** Chooses jobs for the polls round robin, one each, so that work spreads evenly over the workers. */
  private choose(): Intent[] {
    const { state } = this;
    if (state.paused) return [];
    const now = state.clock.steady();
    const intents: Intent[] = [];
    const openPolls = this.openPolls(now);
    let sizeKib = 0;
    const isFull = () => intents.length >= MAX_BATCH || sizeKib >= MAX_CLAIM_KIB;
    for (let before = -1; before < intents.length && !isFull(); ) {
      before = intents.length;
      for (const openPoll of openPolls) {
        const { spare } = openPoll;
        if (openPoll.room === 0 || isFull() || (spare && spare.left <= 0)) continue;
        const entry = isOpen(openPoll.poll.session, now) ? this.nextFor(openPoll, now) : undefined;
        if (entry) {
          intents.push(intend(entry, openPoll.poll));
          sizeKib += entry.sizeKib;
          openPoll.roomKib -= entry.sizeKib;
          if (spare) spare.left -= 1;
        }
        openPoll.room = entry && openPoll.roomKib > 0 ? openPoll.room - 1 : 0;
      }
    }
    return intents;
  }

  private openPolls(now: number): OpenPoll[] {
    const { shares, fitness, sessions, gangs } = this.state;
    const openPolls: OpenPoll[] = [];
    const spare = gangs.spareSlots(sessions.values(), now);
    for (const session of sessions.values()) {
      if (session.draining || session.polls.size === 0) continue;
      if (!isOpen(session, now)) {
        this.rateTimer.arm(session.bucket!.opensAt);
        continue;
      }
      const canRun = (needs: number) => fitness.fits(session, needs);
      for (const poll of session.polls) {
        if (isFree(poll))
          openPolls.push({
            poll,
            room: poll.max,
            roomKib: MAX_ANSWER_KIB,
            round: shares.round(session),
            canRun,
            spare: spare?.get(session.poolKey),
          });
      }
    }
    return openPolls;
  }

  /** The next job for a worker: round robin over tenants and queues, by priority inside a queue. */
  private nextFor({ poll, round, canRun }: OpenPoll, now: number): Entry | undefined {
    const { backlog, turns, clock } = this.state;
    for (;;) {
      const entry = backlog.take(round, canRun, now);
      if (!entry) return undefined;
      if (entry.fence === 1 && entry.startBefore !== null && entry.startBefore <= clock.now()) {
        backlog.abandon(entry);
        this.parts.onExpired();
        continue;
      }
      // Row-level security does not bind a leader, so whose job it is by its own row, and not only by its queue, is asserted
      // here. A job that is in a queue of another tenant stays out of memory for this term.
      if (!poll.session.servesTenant(entry.tenant)) {
        backlog.abandon(entry);
        this.state.log.error({ job: entry.id }, 'a job is in a queue of another tenant and is not started');
        continue;
      }
      // The turn of a job in the backlog is always free; anything else is a bug or a wrong memory.
      if (!turns.isTaken(entry.id)) {
        poll.session.bucket?.draw(now);
        return entry;
      }
      backlog.abandon(entry);
      this.state.doubt(`job ${entry.id} was chosen while its turn was taken`);
      return undefined;
    }
  }

  private async claim(intents: readonly Intent[]): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    const refused: Intent[] = [];
    // A poll that got a job from elsewhere meanwhile would be settled, and the jobs claimed here would reach nobody.
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
            state.backlog.abandon(entry);
            state.turns.wake(entry.id);
            // It stays out of memory for this term; the next one finds it in the table.
            state.log.error({ job: entry.id, error: messageOf(error) }, 'a job cannot be claimed');
          },
        ),
      );
    } catch (error) {
      // The server refused the statement, so nothing was claimed and all jobs wait again.
      const left = intents.filter((intent) => !intent.isSettled);
      for (const { entry } of left) state.backlog.abandon(entry);
      await state.admit(left.map(({ entry }) => entry));
      for (const { id } of left) state.turns.wake(id);
      throw error;
    } finally {
      for (const { poll } of intents) poll.reserved = false;
      await state.follow(refused.map(({ entry }) => entry.id));
    }
  }

  /** Claims the jobs; answers with a look-up of what was claimed. */
  private write(intents: readonly Intent[], now: number): Promise<Found> {
    const expected = new Map<string, ExpectedCounts>();
    for (const { entry } of intents) {
      let counts = expected.get(entry.tenant);
      if (!counts) {
        counts = { jobs: 0, lateness: emptyHistogram(), latenessMs: 0 };
        expected.set(entry.tenant, counts);
      }
      counts.jobs += 1;
      if (entry.fence > 1) continue;
      const lateBy = Math.max(0, now - entry.runAt);
      counts.lateness[bucketOf(lateBy)]! += 1;
      counts.latenessMs += lateBy;
    }
    const { hot, term } = this.state;
    const claim = intents.every(({ entry }) => entry.row) ? claimFromMemory : claimFromTable;
    const buckets = this.bucketsOf(intents);
    if (buckets.queues.size === 0 && buckets.tenants.size === 0)
      return claim(hot, term, intents, now, expected);
    return leaderTransaction(hot, term, async (db) => {
      await saveBuckets(db, term, buckets);
      return claim(db, term, intents, now, expected);
    });
  }

  /** The token buckets that these jobs have drawn on. */
  private bucketsOf(intents: readonly Intent[]): BucketState {
    const { shares, clock } = this.state;
    const queues = new Map<number, BucketMark>();
    const tenants = new Map<string, BucketMark>();
    let last: number | undefined;
    for (const { entry } of intents) {
      if (entry.queue === last) continue;
      last = entry.queue;
      const share = shares.queue(entry.queue);
      if (share.bucket) queues.set(entry.queue, share.bucket.mark(clock));
      if (share.tenant.bucket) tenants.set(entry.tenant, share.tenant.bucket.mark(clock));
    }
    return { queues, tenants };
  }

  /** Hands over what was claimed; answers with the rest, which changed in the table since memory learned of it. */
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
      const found = find(entry, claim, poll);
      if (found) {
        claimed.push(found);
        state.backlog.claimed(entry);
      } else {
        state.backlog.abandon(entry);
        refused.push(intent);
      }
    }
    const orphans = handOver(state, claimed, this.parts.onOrphans);
    for (const { id } of intents) state.turns.wake(id);
    if (orphans.length > 0) this.parts.onOrphans(orphans);
    return refused;
  }
}

/** A job as it was claimed for a poll; null when it was not claimed. */
type Found = (entry: Entry, claim: ClaimFacts, poll: Poll) => Claimed | null;

type Claim = (
  db: Queryable,
  term: TermKey,
  intents: readonly Intent[],
  now: number,
  expected: ReadonlyMap<string, ExpectedCounts>,
) => Promise<Found>;

/** For jobs that this process stored itself: the table need only say which of them were claimed. */
const claimFromMemory: Claim = async (db, term, intents, now, expected) => {
  const refused = await claimKnownJobs(db, term, intents, now, expected, workflowsOf(intents));
  let last: { readonly definition: StoredDefinition; readonly facts: JobFacts } | undefined;
  return (entry, claim, poll) => {
    if (refused.has(entry.id)) return null;
    const { definition, payload, workflow = null } = entry.row!;
    if (last?.definition !== definition) last = { definition, facts: factsOfNew(definition, entry.row!) };
    const { target, traceparent } = definition;
    const running = new Running(entry, last.facts, claim);
    return { running, work: { payload, target, traceparent, workflow }, poll };
  };
};

/** The workflows of jobs whose rows are in memory, each once. */
function workflowsOf(intents: readonly Intent[]): string[] {
  const workflows = new Set<string>();
  let last: string | undefined;
  for (const { entry } of intents) {
    const workflow = entry.row?.workflow;
    if (workflow !== undefined && workflow !== last) workflows.add(workflow);
    last = workflow;
  }
  return [...workflows];
}

const claimFromTable: Claim = async (...args) => {
  const rows = new Map((await claimJobs(...args)).map((row) => [row.id, row]));
  return (entry, claim, poll) => {
    const row = rows.get(entry.id);
    if (!row) return null;
    const { payload, target, traceparent, workflow } = row;
    const running = new Running(entry, factsOf(row), claim);
    return { running, work: { payload, target, traceparent, workflow }, poll };
  };
};
