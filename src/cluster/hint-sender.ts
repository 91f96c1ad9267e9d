import { Agent, request } from 'undici';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Waiting } from '../store/read-backlog.js';

/** Jobs that were stored, for whoever leads. */
export interface Hint {
  readonly jobs: readonly Waiting[];
  /** The earliest `startBefore` among stored jobs that are not in `jobs`. */
  readonly startBefore: number | null;
}

export interface HintSenderOptions {
  readonly log: Log;
  readonly leaderUrl: () => string | null;
  /** The credential by which nodes know each other. */
  readonly token: () => string;
}

const TIMEOUT_MS = 2_000;
/** More than this would be slower to send than to be found by the look-back. */
const MAX_JOBS = 20_000;

/**
 * Tells the leader of jobs that this node has stored: speed, never truth. Hints that gather while one is on
 * its way go together; what cannot be sent is dropped, because the leader's look-back finds the jobs.
 */
export class HintSender {
  private readonly agent = new Agent({ connections: 2, connect: { timeout: TIMEOUT_MS } });
  private jobs: Waiting[] = [];
  private startBefore: number | null = null;
  private sending = false;

  constructor(private readonly options: HintSenderOptions) {}

  send(hint: Hint): void {
    if (this.jobs.length + hint.jobs.length <= MAX_JOBS) this.jobs.push(...hint.jobs);
    this.startBefore = earliest(this.startBefore, hint.startBefore);
    if (!this.sending) void this.flush();
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private async flush(): Promise<void> {
    this.sending = true;
    while (this.jobs.length > 0 || this.startBefore !== null) {
      const hint: Hint = { jobs: this.jobs, startBefore: this.startBefore };
      this.jobs = [];
      this.startBefore = null;
      try {
        await this.sendOnce(hint);
      } catch (error) {
        this.options.log.debug({ error: messageOf(error), jobs: hint.jobs.length }, 'a hint was lost');
      }
    }
    this.sending = false;
  }

  private async sendOnce(hint: Hint): Promise<void> {
    const url = this.options.leaderUrl();
    if (url === null) return;
    const answer = await request(new URL('/internal/hints', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${this.options.token()}`, 'content-type': 'application/json' },
      body: JSON.stringify(hint),
      dispatcher: this.agent,
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    await answer.body.dump();
  }
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
