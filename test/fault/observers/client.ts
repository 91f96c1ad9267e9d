import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { JobSubmission } from '../../../src/core/job.js';
import type { Order, Submission } from '../history.js';
import { monotonic } from '../monotonic.js';

/** Failures after which it is certain that nobody has seen the request. */
const NOT_SENT = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);
const TIMEOUT_MS = 8_000;
const REPEAT_PAUSE_MS = 200;

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** The submitting client: notes of each submission whether it was taken, refused, or is in doubt. */
export class Client {
  readonly submissions: Submission[] = [];
  readonly #agent = new Agent({ connections: 16, connect: { timeout: 2_000 } });
  #turn = 0;

  constructor(
    private readonly nodeUrls: () => readonly string[],
    private readonly apiKey: string,
  ) {}

  /**
   * Submits the orders in one request. Those with keys are repeated until an answer comes, as users are told to;
   * the others stay in doubt.
   */
  async submit(orders: readonly Order[], signal: AbortSignal): Promise<void> {
    const repeatable = orders.every((order) => order.key !== null);
    for (;;) {
      const submission = await this.#submitOnce(orders);
      this.submissions.push(submission);
      if (submission.outcome !== 'unknown' || !repeatable || signal.aborted) return;
      await sleep(REPEAT_PAUSE_MS);
    }
  }

  /** Asks the nodes in turn until one takes the request; throws when no answer comes. */
  async ask(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply> {
    const urls = this.nodeUrls();
    for (let left = urls.length - 1; ; left -= 1) {
      this.#turn += 1;
      try {
        return await this.#askAt(urls[this.#turn % urls.length]!, method, path, body);
      } catch (error) {
        if (left === 0 || !wasNotSent(error)) throw error;
      }
    }
  }

  async #askAt(url: string, method: 'GET' | 'POST', path: string, body?: object): Promise<Reply> {
    const answer = await request(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${this.apiKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      dispatcher: this.#agent,
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, body: text === '' ? null : JSON.parse(text) };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #submitOnce(orders: readonly Order[]): Promise<Submission> {
    const sentAt = monotonic();
    const ended = (outcome: Submission['outcome'], ids: readonly string[] = []): Submission => ({
      ...{ orders, sentAt, outcome, ids },
      answeredAt: monotonic(),
    });
    try {
      const { status, body } = await this.ask('POST', '/v1/jobs/bulk', { jobs: orders.map(toSubmission) });
      if (status === 201) return ended('ok', (body as { ids: string[] }).ids);
      // A 5xx may come from a database that was lost at the commit.
      return ended(status < 500 ? 'refused' : 'unknown');
    } catch (error) {
      return ended(wasNotSent(error) ? 'refused' : 'unknown');
    }
  }
}

function wasNotSent(error: unknown): boolean {
  return NOT_SENT.has((error as NodeJS.ErrnoException).code ?? '');
}

function toSubmission(order: Order): JobSubmission {
  return {
    task: 'effect',
    payload: order,
    delivery: order.atMostOnce ? 'at-most-once' : 'at-least-once',
    timeout: `${order.timeoutMs}ms`,
    // What a fault needs for itself does not wait for a backlog.
    ...(order.blocking && { priority: 9 }),
    ...(order.delayMs > 0 && { delay: `${order.delayMs}ms` }),
    ...(order.key !== null && { key: order.key }),
    ...(!order.atMostOnce && {
      retry: {
        maxAttempts: order.maxAttempts,
        backoff: { base: '100ms', max: '1s' },
        // Workers are killed all the time here; only a job that kills them itself should run out of tries.
        onWorkerLost: { maxAttempts: 50 },
      },
    }),
  };
}
