import { PunctualError } from '../core/errors.js';
import { Loop, logFailure } from '../core/loop.js';
import { type CancelRequest, forgetCancelRequests, readCancelRequests } from '../store/cancel-requests.js';
import type { Queryable } from '../store/database.js';
import type { TermKey } from '../store/leader-statement.js';
import type { JobControl } from './job-control.js';
import type { LeaderState } from './leader-state.js';

const EVERY_MS = 60_000;
/** Requests that are carried out at the same time. */
const AT_ONCE = 10;

/** What this needs of the leader. */
type Leader = Pick<LeaderState, 'isOver' | 'log' | 'write'> & {
  readonly reads: Queryable;
  readonly hot: Queryable;
  readonly term: TermKey;
};

/**
 * Carries out the requests to cancel jobs that callers made inside their own transactions; the look-back finds them. A
 * request is removed after it was carried out, by a second write. If the leader dies between the two, the next one repeats
 * the request when its term begins. A job that has ended stays as it is then; only one that somebody has retried before
 * the repetition is cancelled again.
 */
export class CancelRequests {
  private readonly loop: Loop;

  constructor(
    private readonly leader: Leader,
    private readonly jobControl: Pick<JobControl, 'cancel'>,
  ) {
    this.loop = new Loop({
      name: 'cancel requests',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(leader.log, 'requests to cancel could not be carried out'),
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

  /** Carries out all requests that there are. Those that fail are left for the next pass; then it throws the first error. */
  async runOnce(): Promise<void> {
    const { leader } = this;
    let failure: PromiseRejectedResult | undefined;
    for (let after = 0; ; ) {
      const requests = await readCancelRequests(leader.reads, after, AT_ONCE);
      const outcomes = await Promise.allSettled(requests.map((request) => this.carryOut(request)));
      // What is left is for the next leader.
      if (leader.isOver) return;
      const done = requests.filter((_, i) => outcomes[i]!.status === 'fulfilled').map(({ id }) => id);
      if (done.length > 0) await leader.write(() => forgetCancelRequests(leader.hot, leader.term, done));
      failure ??= outcomes.find((each) => each.status === 'rejected');
      if (requests.length < AT_ONCE) break;
      after = requests.at(-1)!.id;
    }
    if (failure) throw failure.reason;
  }

  private async carryOut({ tenant, job }: CancelRequest): Promise<void> {
    try {
      await this.jobControl.cancel(tenant, job);
    } catch (error) {
      const code = error instanceof PunctualError ? error.code : null;
      if (code !== 'JOB_ENDED' && code !== 'JOB_NOT_FOUND') throw error;
    }
  }
}
