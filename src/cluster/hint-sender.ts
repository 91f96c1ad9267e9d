import { addAll } from '../core/long-lists.js';
import type { Waiting } from '../store/read-backlog.js';
import type { PeerCaller } from './peer-caller.js';

/** Jobs that were stored, for whoever leads. */
export interface Hint {
  readonly jobs: readonly Waiting[];
  /** The earliest `startBefore` among stored jobs that are not in `jobs`. */
  readonly startBefore: number | null;
}

/** More than this would be slower to send than to be found by the look-back. */
const MAX_JOBS = 20_000;

/**
 * Tells the leader of jobs that this node has stored: speed, never truth. Hints that gather while one is on
 * its way go together; what cannot be sent is dropped, because the leader's look-back finds the jobs.
 */
export class HintSender {
  private jobs: Waiting[] = [];
  private startBefore: number | null = null;
  private sending = false;

  constructor(
    private readonly peers: PeerCaller,
    private readonly leaderUrl: () => string | null,
  ) {}

  send(hint: Hint): void {
    if (this.jobs.length + hint.jobs.length <= MAX_JOBS) addAll(this.jobs, hint.jobs.map(withoutRow));
    this.startBefore = earliest(this.startBefore, hint.startBefore);
    if (!this.sending) void this.flush();
  }

  private async flush(): Promise<void> {
    this.sending = true;
    while (this.jobs.length > 0 || this.startBefore !== null) {
      const hint: Hint = { jobs: this.jobs, startBefore: this.startBefore };
      this.jobs = [];
      this.startBefore = null;
      const url = this.leaderUrl();
      if (url !== null) await this.peers.post(url, '/internal/hints', hint);
    }
    this.sending = false;
  }
}

/** What the leader must know to choose; it reads the rest with its claim. */
function withoutRow({ row: _, ...job }: Waiting): Waiting {
  return job;
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
