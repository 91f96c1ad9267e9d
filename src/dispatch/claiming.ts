import { messageOf } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import { Loop } from '../core/loop.js';
import { type ClaimedRow, claimJobs } from '../store/claim-jobs.js';
import { toAssignment } from './assignment.js';
import { bisect } from './bisect.js';
import { type Running, startRunning } from './running.js';
import type { Poll, WorkerSession } from './session.js';
import type { Entry } from './shelf.js';
import type { LeaderState } from './state.js';

/** Jobs claimed in one statement: enough to spread its cost, few enough to answer within milliseconds. */
const MAX_BATCH = 500;

interface Intent {
  readonly entry: Entry;
  readonly poll: Poll;
}

/**
 * Brings due jobs and waiting workers together. A job is chosen in memory, claimed in the database, and only
 * what the claim returned is handed over, after its commit.
 */
export class Claiming {
  private readonly loop: Loop;

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
      onError: (loop, error) =>
        state.log.warn({ loop, error: messageOf(error) }, 'jobs could not be claimed'),
    });
    state.wakeClaiming = () => this.loop.wake();
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
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
    const now = state.clock.now();
    const intents: Intent[] = [];
    const room = new Map(this.waitingPolls().map((poll) => [poll, poll.max]));
    while (room.size > 0 && intents.length < MAX_BATCH) {
      for (const [poll, left] of room) {
        const entry = intents.length < MAX_BATCH ? this.nextFor(poll.session, now) : undefined;
        if (entry) intents.push({ entry, poll });
        if (entry && left > 1) room.set(poll, left - 1);
        else room.delete(poll);
      }
    }
    return intents;
  }

  private waitingPolls(): Poll[] {
    const polls: Poll[] = [];
    for (const session of this.state.sessions.values()) {
      if (session.draining) continue;
      for (const poll of session.polls) if (!poll.settled) polls.push(poll);
    }
    return polls;
  }

  /** Queues take turns; inside a queue priority decides. */
  private nextFor(session: WorkerSession, now: number): Entry | undefined {
    const { backlog, directory, turns } = this.state;
    for (const queue of backlog.turns) {
      const info = directory.queue(queue.queue);
      if (!info || info.paused || !session.serves(info)) continue;
      for (;;) {
        const entry = backlog.take(queue, (needs) => {
          const info = directory.needsOf(needs);
          return info !== undefined && session.fits(info);
        });
        if (!entry) break;
        if (entry.fence === 1 && entry.startBefore !== null && entry.startBefore <= now) {
          this.parts.onExpired();
          continue;
        }
        // Nobody has the turn of a job that is in the backlog, so this cannot fail.
        if (turns.tryTake(entry.id)) return entry;
        this.state.doubt(`job ${entry.id} was chosen in the middle of another's turn`);
      }
    }
    return undefined;
  }

  private async claim(intents: readonly Intent[]): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    const left = new Set(intents);
    const refused: Intent[] = [];
    try {
      await state.write(() =>
        bisect(
          intents,
          async (part) => {
            const rows = new Map((await this.write(part, now)).map((row) => [row.id, row]));
            for (const intent of part) left.delete(intent);
            this.handOver(part, rows, now);
            refused.push(...part.filter(({ entry }) => !rows.has(entry.id)));
            return part;
          },
          (intent, error) => {
            const { entry } = intent;
            left.delete(intent);
            state.turns.give(entry.id);
            // Nobody can start it during this term; the next one will find it in the table.
            state.log.error({ job: entry.id, error: messageOf(error) }, 'a job cannot be claimed');
          },
        ),
      );
    } catch (error) {
      // The server refused the statement: nothing of it was claimed, so all of it waits again.
      for (const { entry } of left) state.turns.give(entry.id);
      for (const { entry } of left) state.backlog.add(entry, true);
      throw error;
    }
    await state.follow(refused.map(({ entry }) => entry.id));
  }

  private write(intents: readonly Intent[], now: number): Promise<ClaimedRow[]> {
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
    return claimJobs(
      this.state.hot,
      this.state.term,
      intents.map(({ entry, poll }) => ({ id: entry.id, fence: entry.fence, worker: poll.session.id })),
      now,
      lateness,
    );
  }

  private handOver(intents: readonly Intent[], rows: ReadonlyMap<string, ClaimedRow>, now: number): void {
    const { state } = this;
    const polls = new Set<Poll>();
    const orphans: Running[] = [];
    for (const { entry, poll } of intents) {
      const row = rows.get(entry.id);
      if (row) {
        const running = startRunning(entry, row, poll.session.id, state.term.epoch, state.clock, now);
        state.running.set(entry.id, running);
        poll.session.running.set(entry.id, running);
        poll.given.push(running);
        polls.add(poll);
        if (!state.sessions.has(poll.session.id)) orphans.push(running);
      }
      state.turns.give(entry.id);
    }
    if (orphans.length > 0) this.parts.onOrphans(orphans);
    for (const poll of polls) {
      // A poll that ended meanwhile leaves its jobs unacknowledged; the next poll offers them again.
      poll.settle({
        epoch: state.term.epoch,
        jobs: poll.given.map((running) => toAssignment(running, state.secret)),
      });
    }
  }
}
