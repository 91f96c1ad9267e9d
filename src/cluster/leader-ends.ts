import { randomUUID } from 'node:crypto';
import { Agent, type Dispatcher } from 'undici';
import { LeaderElsewhere } from './leader-elsewhere.js';

const TIMEOUT_MS = 2_000;

/** How to reach the leader, and whom to tell of ends. */
interface LeaderLine {
  readonly url: string;
  /** Aborts when this node learns that the leader's term is over. */
  readonly termOver: AbortSignal;
  /** The credential by which nodes know each other. */
  readonly token: () => string;
  readonly onEnded: (ids: readonly string[]) => void;
}

/**
 * A line to a leader elsewhere on which it tells which jobs end: an answer that goes on for as long as both sides want it.
 * Which jobs are meant is told by calls beside it. The line itself says that a call was taken note of, so that a line that
 * is dead is noticed.
 */
export class LeaderEnds {
  private readonly agent = new Agent({ connections: 2, connect: { timeout: TIMEOUT_MS } });
  private readonly path = `/internal/ends/${randomUUID()}`;
  private readonly controller = new AbortController();
  private readonly taken = new Map<number, () => void>();
  private changes = 0;
  private rest = '';

  private constructor(private readonly line: LeaderLine) {}

  static async open(line: LeaderLine): Promise<LeaderEnds> {
    const ends = new LeaderEnds(line);
    try {
      await ends.begin();
      return ends;
    } catch (error) {
      ends.close();
      throw error;
    }
  }

  get over(): AbortSignal {
    return this.controller.signal;
  }

  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    const change = ++this.changes;
    const taken = this.isTaken(change);
    // It may fail while the answer is still awaited, when nobody listens to it yet.
    taken.catch(() => undefined);
    try {
      const answer = await this.ask('POST', JSON.stringify({ change, add, remove }));
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`the leader answered ${answer.statusCode}`);
      await taken;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  readonly close = (): void => {
    if (this.over.aborted) return;
    this.line.termOver.removeEventListener('abort', this.close);
    this.controller.abort();
    void this.agent.destroy();
  };

  private async begin(): Promise<void> {
    const { termOver, url } = this.line;
    termOver.throwIfAborted();
    termOver.addEventListener('abort', this.close, { once: true });
    const answer = await this.ask('GET');
    // A leader of an older version: whoever waits does so there.
    if (answer.statusCode === 404) throw new LeaderElsewhere(url);
    if (answer.statusCode !== 200) throw new Error(`the leader answered ${answer.statusCode}`);
    answer.body.setEncoding('utf8').on('data', (text: string) => this.read(text));
    for (const event of ['end', 'error', 'close']) answer.body.on(event, this.close);
  }

  private read(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    try {
      for (const line of lines) this.hear(JSON.parse(line) as number | string[]);
    } catch {
      // Whoever answers like this is no leader; those who wait are attached anew.
      this.close();
    }
  }

  private hear(said: number | string[]): void {
    if (typeof said === 'number') this.taken.get(said)?.();
    else this.line.onEnded(said);
  }

  private isTaken(change: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        clearTimeout(timer);
        this.taken.delete(change);
        this.over.removeEventListener('abort', failed);
        end();
      };
      const failed = () => settle(() => reject(new Error('the leader is not heard any more')));
      const timer = setTimeout(failed, TIMEOUT_MS);
      this.over.addEventListener('abort', failed, { once: true });
      this.taken.set(change, () => settle(resolve));
    });
  }

  private ask(method: 'GET' | 'POST', body?: string): Promise<Dispatcher.ResponseData> {
    return this.agent.request({
      origin: new URL(this.line.url).origin,
      path: this.path,
      method,
      headers: {
        authorization: `Bearer ${this.line.token()}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: 0,
      signal: this.over,
    });
  }
}
