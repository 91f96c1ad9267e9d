import { formatDuration } from '../core/duration.js';
import type { JobError } from '../core/job.js';
import { logFailure } from '../core/loop.js';
import type { AttemptEnd } from '../core/transition.js';
import type { Finisher } from './finisher.js';
import type { LeaderState } from './leader-state.js';
import type { Running } from './running.js';

/** How long a cancelled attempt may take to confirm, and a timed-out one to report, before the leader decides. */
const GRACE_MS = 10_000;

/**
 * Ends attempts that their workers should have ended by now. Nobody waits for these ends: that of a job which another
 * session has locked is stored only when the lock is gone, and would hold up all others until then.
 */
export class OverdueAttempts {
  /** Attempts whose end has begun. */
  private readonly ending = new Set<Running>();
  private readonly onError: (error: unknown) => void;

  constructor(
    private readonly state: LeaderState,
    private readonly finisher: Finisher,
  ) {
    const log = logFailure(state.log, 'an overdue attempt could not be ended');
    this.onError = (error) => {
      if (!state.isOver) log('workers', error);
    };
  }

  /** Begins the end of every attempt that is overdue. */
  runOnce(): void {
    const now = this.state.clock.steady();
    for (const running of this.state.running.values()) {
      const end = this.ending.has(running) ? null : this.endOf(running, now);
      if (end) void this.end(running, end);
    }
  }

  private async end(running: Running, end: AttemptEnd): Promise<void> {
    this.ending.add(running);
    await this.finisher.end(running.id, running.fence, end, null).catch(this.onError);
    this.ending.delete(running);
  }

  /** How the leader ends an attempt; null while it may run on. */
  private endOf(running: Running, now: number): AttemptEnd | null {
    const { state } = this;
    if (running.isHandedOn) {
      if (running.cancelledAt !== null) return { outcome: 'cancelled', error: null };
      // A receiver whose time ran out while there was no leader to tell must get a chance to say what it has done.
      return now > running.deadline && state.termMs > state.config.workerTimeout ? timedOut(running) : null;
    }
    // What became of its batch is decided by those who look after batches.
    if (state.gangs.isUntouched(running)) return null;
    if (!state.sessions.has(running.worker)) {
      // Its session ended before the claim was committed, or never sent a heartbeat to this leader.
      const overdue = now - running.handedAt > state.config.workerTimeout;
      return overdue ? lost('its worker is not there') : null;
    }
    if (running.cancelledAt !== null && now - running.cancelledAt > GRACE_MS) {
      const error = { code: 'CANCELLED', message: 'Cancelled; the worker did not confirm in time.' };
      return { outcome: 'cancelled', error };
    }
    if (now - running.since > running.timeoutMs + GRACE_MS + state.config.workerTimeout) {
      return timedOut(running);
    }
    return null;
  }
}

function timedOut({ timeoutMs }: Running): AttemptEnd {
  const message = `The attempt did not end within ${formatDuration(timeoutMs)}.`;
  return { outcome: 'timed-out', error: { code: 'TIMED_OUT', message } };
}

/** The end of an attempt whose worker session is gone. */
export function lost(why: string): AttemptEnd {
  const error: JobError = { code: 'LOST', message: `The attempt was lost: ${why}.` };
  return { outcome: 'lost', error };
}
