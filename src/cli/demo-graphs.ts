import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../client/api-client.js';
import type { Batch, BatchSubmission } from '../core/batch.js';
import { PunctualError } from '../core/errors.js';
import type { JobTemplate } from '../core/job.js';
import type { Workflow, WorkflowSubmission } from '../core/workflow.js';
import { follow } from './end-wait.js';
import type { Progress } from './progress-line.js';

/** The workflow and the batch of the demo. They go before the other naps, so that something is to be seen soon. */

const RETRY_MS = 300;

const nap = (seconds: number): JobTemplate => ({ task: 'nap', priority: 9, payload: { seconds } });

const WORKFLOW: WorkflowSubmission = {
  name: 'demo',
  jobs: {
    A: nap(2),
    B: { ...nap(3), after: ['A'] },
    C: { ...nap(5), after: ['A'] },
    D: { ...nap(2), after: ['B', 'C'] },
  },
};

const BATCH: BatchSubmission = { jobs: [nap(4), nap(4), nap(4)] };

interface Shown {
  /** As it is called in the CLI. */
  readonly noun: 'workflow' | 'batch';
  readonly path: string;
  readonly body: object;
  /** What it is, on one line. */
  readonly text: string;
}

const SHOWN: readonly Shown[] = [
  { noun: 'workflow', path: '/v1/workflows', body: WORKFLOW, text: 'a workflow A > B, C > D' },
  { noun: 'batch', path: '/v1/batches', body: BATCH, text: 'a batch of 3 naps that start together' },
];

/**
 * Submits a workflow and a batch, and tells how they end. `demo` tells this demo apart from others, so that the
 * submissions can be repeated. Resolves when both have ended.
 */
export async function showGraphs(
  api: ApiClient,
  demo: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(SHOWN.map((shown) => show(api, demo, shown, progress, signal)));
}

async function show(
  api: ApiClient,
  demo: string,
  { noun, path, body, text }: Shown,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const headers = { 'idempotency-key': `demo-${demo}-${noun}` };
  const { id } = await api.request<{ id: string }>('POST', path, { body, headers, signal, retry: true });
  progress.line(`demo: ${text} is submitted; see punctual ${noun} get ${id}`);
  const awaited = {
    path: `${path}/${id}`,
    events: { [noun]: id },
    hasEnded: ({ endedAt }: Workflow | Batch) => endedAt !== null,
    lineOf: () => text,
  };
  for (;;) {
    try {
      for await (const { state, endedAt } of follow<Workflow | Batch>(api, awaited, signal))
        if (endedAt !== null) return progress.line(`demo: the ${noun} has ended: ${state}`);
    } catch (error) {
      // Somebody may have killed the leader, as the docs suggest.
      if (!(error instanceof PunctualError && error.status === 503)) throw error;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }
}
