import { expect } from 'vitest';
import type { ConfigInput } from '../../../src/core/config.js';
import type { Assignment, OriginReport, OriginView, Page } from '../../../src/core/wire.js';
import type { TestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { TestClock } from '../../test-clock.js';

/** A node whose http targets a worker by hand serves, on a clock that the test moves. */
export class OriginTester {
  private constructor(
    readonly node: TestNode,
    readonly clock: TestClock,
    readonly worker: ProtocolWorker,
  ) {}

  static async start(
    settings: ConfigInput = {},
    { clock = new TestClock(), database }: { clock?: TestClock; database?: TestDatabase } = {},
  ): Promise<OriginTester> {
    const node = await nodeForTest({
      clock,
      settings: { workerTimeout: '2d', ...settings },
      ...(database && { database }),
    });
    return new OriginTester(node, clock, await registered(node));
  }

  /** Submits a call; an attempt that fails is repeated at once, up to a hundred times. */
  async call(url: string, more: Record<string, unknown> = {}): Promise<string> {
    const { id } = await this.node.submit(callOf(url, more));
    return id;
  }

  async callMany(urls: readonly string[], more: Record<string, unknown> = {}): Promise<string[]> {
    const jobs = urls.map((url) => callOf(url, more));
    return (await this.node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', { body: { jobs } })).ids;
  }

  /** Claims exactly so many calls. */
  async claim(count: number): Promise<Assignment[]> {
    const claimed: Assignment[] = [];
    while (claimed.length < count) claimed.push(...(await this.worker.claim(1_000)));
    expect(claimed).toHaveLength(count);
    await this.worker.claimNothing();
    return claimed;
  }

  /** Reports that a call failed, and what that says about its origin. */
  async fail({ jobId, fence }: Assignment, origin?: OriginReport): Promise<void> {
    const report = { jobId, fence, outcome: 'failed', error: { message: 'no luck' } } as const;
    const { accepted } = await this.worker.report({ ...report, ...(origin && { origin }) });
    expect(accepted).toEqual([jobId]);
  }

  /** Lets a circuit open: calls of their own to the origin that fail for good. */
  async open(url: string, failures = 5): Promise<void> {
    await this.callMany(
      Array.from({ length: failures }, () => url),
      { retry: { maxAttempts: 1 } },
    );
    for (const call of await this.claim(failures)) await this.fail(call, { isDown: true });
  }

  async origins(): Promise<readonly OriginView[]> {
    return (await this.node.get<Page<OriginView>>('GET', '/v1/origins')).data;
  }

  async origin(name: string): Promise<OriginView | undefined> {
    return (await this.origins()).find(({ origin }) => origin === name);
  }

  why(id: string): Promise<Record<string, unknown>> {
    return this.node.get('GET', `/v1/jobs/${id}/why`);
  }
}

export function registered(node: TestNode): Promise<ProtocolWorker> {
  return ProtocolWorker.register(node, { slots: 5_000, queues: ['*'], targets: ['http'], tasks: [] });
}

export function callOf(url: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    target: { type: 'http', url },
    retry: { maxAttempts: 50, backoff: { base: '0s', jitter: 0 } },
    ...more,
  };
}
