import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { JobSubmission } from '../../../src/core/job.js';
import type { CancelRecord, Order, Submission } from '../history.js';
import { monotonic } from '../monotonic.js';
import { PROGRAM } from '../rig/program-store.js';

/** Failures after which it is certain that nobody has seen the request. */
const NOT_SENT = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);
const TIMEOUT_MS = 8_000;
const REPEAT_PAUSE_MS = 200;
const CANCELS_AT_ONCE = 8;
/** How often a node that is away is asked, which is for longer than it takes to start one. */
const AWAY_TRIES = 100;

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH';

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** How jobs reach a node. */
export interface Way {
  /** The node that takes the request, if it must be this one. */
  readonly node?: { readonly url: string };
  /** Each job in a request of its own instead of all in one. */
  readonly singly?: boolean;
}

interface Asked {
  readonly tenant?: string;
  /** The nodes that may be asked. */
  readonly urls?: readonly string[];
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
  async submit(orders: readonly Order[], signal: AbortSignal, way: Way = {}): Promise<Submission> {
    const repeatable = orders.every((order) => order.key !== null);
    for (let tries = 1; ; tries += 1) {
      const submission = await this.note(orders, () => this.#send(orders, way));
      // A node that must be the one may be away for a moment.
      const isAway = submission.outcome === 'refused' && way.node !== undefined && tries < AWAY_TRIES;
      if (!(submission.outcome === 'unknown' || isAway) || !repeatable || signal.aborted) return submission;
      await sleep(REPEAT_PAUSE_MS);
    }
  }

  /** Sends orders until it is known what became of them, if they may be sent again. */
  async noteAnswer(
    orders: readonly Order[],
    send: () => Promise<readonly string[]>,
    repeatable: boolean,
    signal: AbortSignal,
  ): Promise<Submission> {
    for (;;) {
      const submission = await this.note(orders, send);
      if (submission.outcome !== 'unknown' || !repeatable || signal.aborted) return submission;
      await sleep(REPEAT_PAUSE_MS);
    }
  }

  /** Asks once for something to be cancelled, and notes what became of that. */
  async cancel(path: string): Promise<CancelRecord> {
    const sentAt = monotonic();
    const outcome = await this.ask('POST', `${path}/cancel`).then(
      ({ status }) => (status >= 500 ? 'unknown' : status < 300 ? 'ok' : 'refused'),
      (error: unknown) => (wasNotSent(error) ? 'refused' : 'unknown'),
    );
    return { sentAt, answeredAt: monotonic(), outcome };
  }

  /** Notes what became of a submission, however it is sent; `send` answers with the ids of what was taken. */
  async note(orders: readonly Order[], send: () => Promise<readonly string[]>): Promise<Submission> {
    const sentAt = monotonic();
    const ended = (outcome: Submission['outcome'], ids: readonly string[] = [], refusal?: string) => {
      const submission: Submission = {
        ...{ orders, sentAt, outcome, ids, answeredAt: monotonic() },
        ...(refusal !== undefined && { refusal }),
      };
      this.submissions.push(submission);
      return submission;
    };
    try {
      return ended('ok', await send());
    } catch (error) {
      if (error instanceof Refusal) return ended('refused', [], error.message);
      return ended(wasNotSent(error) ? 'refused' : 'unknown');
    }
  }

  /** Asks the nodes in turn until one takes the request; throws when no answer comes. */
  async ask(method: Method, path: string, body?: object, asked: Asked = {}): Promise<Reply> {
    const { tenant, urls = this.nodeUrls() } = asked;
    for (let left = urls.length - 1; ; left -= 1) {
      this.#turn += 1;
      try {
        return await this.#askAt(urls[this.#turn % urls.length]!, method, path, body, tenant);
      } catch (error) {
        if (left === 0 || !wasNotSent(error)) throw error;
      }
    }
  }

  /** Takes back every job of its own that nobody can run; the others come to an end by themselves. */
  async cancelUnservable(): Promise<void> {
    const ids = this.submissions.flatMap(({ orders, ids: taken }) =>
      taken.filter((_, index) => !orders[index]!.servable && orders[index]!.partOf === null),
    );
    const cancel = async () => {
      for (let id = ids.pop(); id !== undefined; id = ids.pop())
        // One that was lost with a newer database is not there.
        await this.insist('POST', `/v1/jobs/${id}/cancel`, undefined, [404, 409]);
    };
    await Promise.all(Array.from({ length: CANCELS_AT_ONCE }, cancel));
  }

  /** Asks until a node says yes, or that it is so already; throws when one says that it will never be. */
  async insist(method: Method, path: string, body?: object, fine: readonly number[] = [409]): Promise<void> {
    for (;;) {
      const reply = await this.ask(method, path, body).catch(() => null);
      if (reply !== null && (reply.status < 300 || fine.includes(reply.status))) return;
      if (reply !== null && reply.status < 500) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
      await sleep(REPEAT_PAUSE_MS);
    }
  }

  async #askAt(
    url: string,
    method: Method,
    path: string,
    body: object | undefined,
    tenant: string | undefined,
  ): Promise<Reply> {
    const answer = await request(new URL(path, url), {
      method,
      headers: {
        authorization: `Bearer ${this.apiKey}`,
        'content-type': 'application/json',
        ...(tenant !== undefined && { 'punctual-tenant': tenant }),
      },
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

  async #send(orders: readonly Order[], { node, singly = false }: Way): Promise<readonly string[]> {
    const asked: Asked = { tenant: orders[0]!.tenant, ...(node && { urls: [node.url] }) };
    const jobs = orders.map(toSubmission);
    const reply = singly
      ? await this.ask('POST', '/v1/jobs', jobs[0]!, asked)
      : await this.ask('POST', '/v1/jobs/bulk', { jobs }, asked);
    mustBeTaken(reply);
    return singly ? [(reply.body as { id: string }).id] : (reply.body as { ids: string[] }).ids;
  }
}

/** A node says that it does not take what was sent. */
class Refusal extends Error {}

/** Throws unless a node took what was sent. */
export function mustBeTaken({ status, body }: Reply): void {
  // A 5xx may come from a database that was lost at the commit.
  if (status >= 500) throw new Error(`answered with ${status}`);
  if (status >= 300) throw new Refusal(JSON.stringify(body).slice(0, 300));
}

function wasNotSent(error: unknown): boolean {
  return NOT_SENT.has((error as NodeJS.ErrnoException).code ?? '');
}

/** What does the work of an order: a handler, a call or a program. */
function workOf({ n, workMs, failures, call, program }: Order): Pick<JobSubmission, 'task' | 'target'> {
  if (call)
    return { target: { type: 'http', url: `${call.origin}/orders/${n}`, timeout: `${call.timeoutMs}ms` } };
  if (!program) return { task: 'effect' };
  const args = [n, workMs, failures].map(String);
  return { target: { type: 'exec', artifact: PROGRAM, args, env: { EFFECTS: program.folder } } };
}

/** The job that an order asks for, as the public API takes it. */
export function toSubmission(order: Order): JobSubmission {
  const { n, workMs, failures, blocking, bytes, call } = order;
  return {
    ...workOf(order),
    payload: {
      ...{ n, workMs, failures, blocking },
      ...(call && { failing: call.failing, handsOn: call.handsOn }),
      ...(bytes > 0 && { ballast: 'x'.repeat(bytes) }),
    },
    queue: order.queue,
    requires: order.requires,
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
