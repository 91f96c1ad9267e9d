import { end, order, start } from './good-history.js';
import type { AuditEntry, BatchRecord, Effect, History, JobRecord, WorkflowRecord } from './history.js';

/**
 * A workflow and a batch for a good history. Of the workflow, the first step fails, the second waits for success and is
 * skipped, and the third runs because of the failure. The first start of the batch was taken back before anybody began.
 */

const workflow: WorkflowRecord = {
  ...{ name: 'graph-1', onFailure: 'continue', running: 'finish', cancel: null },
  steps: [
    { name: 'a', n: 50, after: [], runIf: 'all-succeeded', refersTo: null },
    { name: 'b', n: 51, after: ['a'], runIf: 'all-succeeded', refersTo: null },
    { name: 'c', n: 52, after: ['b'], runIf: 'any-failed', refersTo: null },
  ],
  row: { id: 'graph', state: 'failed', stepsLeft: 0 },
};

const batch: BatchRecord = {
  ...{ members: [60, 61], onFailure: 'cancel-rest', startTimeoutMs: null, cancel: null },
  row: { id: 'gang', state: 'succeeded', error: null },
};

const orders = [
  order({ n: 50, failures: 99, maxAttempts: 1, partOf: 'workflow' }),
  order({ n: 51, partOf: 'workflow' }),
  order({ n: 52, partOf: 'workflow' }),
  order({ n: 60, maxAttempts: 1, partOf: 'batch' }),
  order({ n: 61, maxAttempts: 1, partOf: 'batch' }),
];
const IDS = ['a', 'b', 'c', 'm1', 'm2'];

function job(id: string, n: number, state: JobRecord['state'], fence: number): JobRecord {
  const outcome = state === 'failed' ? 'failed' : 'succeeded';
  return {
    ...{ id, n, key: null, state, runAt: 4_000, atMostOnce: false, result: null },
    attempts: fence === 0 ? [] : [{ fence, epoch: 2, outcome }],
  };
}

const effects: readonly Effect[] = [
  ...[start('a', 50, 1, 'w2.1', 4_020), end('a', 50, 1, 'w2.1', 4_025, 'threw')],
  ...[start('c', 52, 1, 'w2.1', 4_070), end('c', 52, 1, 'w2.1', 4_075)],
  ...[start('m1', 60, 2, 'w2.1', 4_120), end('m1', 60, 2, 'w2.1', 4_125)],
  ...[start('m2', 61, 2, 'w2.1', 4_120), end('m2', 61, 2, 'w2.1', 4_125)],
];

type Written = readonly [tx: number, kind: AuditEntry['kind'], job: string, fence: number | null];

const written: readonly Written[] = [
  [200, 'claimed', 'a', 1],
  ...([
    [201, 'freed', 'a', 1],
    [201, 'ended', 'a', 1],
  ] as const),
  [202, 'ended', 'b', null],
  [203, 'claimed', 'c', 1],
  ...([
    [204, 'freed', 'c', 1],
    [204, 'ended', 'c', 1],
    [205, 'over', 'graph', null],
  ] as const),
  ...([
    [206, 'claimed', 'm1', 1],
    [206, 'claimed', 'm2', 1],
    [207, 'freed', 'm1', 1],
    [207, 'freed', 'm2', 1],
  ] as const),
  ...([
    [208, 'claimed', 'm1', 2],
    [208, 'claimed', 'm2', 2],
    [209, 'freed', 'm1', 2],
    [209, 'ended', 'm1', 2],
  ] as const),
  ...([
    [210, 'freed', 'm2', 2],
    [210, 'ended', 'm2', 2],
    [211, 'over', 'gang', null],
  ] as const),
];

/** A good history with a workflow and a batch. */
export function withGraphs(good: History): History {
  return {
    ...good,
    submissions: [...good.submissions, { orders, sentAt: 3_990, answeredAt: 4_000, outcome: 'ok', ids: IDS }],
    jobs: [
      ...good.jobs,
      ...[job('a', 50, 'failed', 1), job('b', 51, 'skipped', 0), job('c', 52, 'succeeded', 1)],
      ...[job('m1', 60, 'succeeded', 2), job('m2', 61, 'succeeded', 2)],
    ],
    effects: [...good.effects, ...effects],
    audit: [
      ...good.audit,
      ...written.map(([tx, kind, id, fence], index) => ({
        ...{ seq: 200 + index, tx, kind, job: id, fence, epoch: 2, writer: 'n2.1', at: 4_010 + index },
      })),
    ],
    workflows: [workflow],
    batches: [batch],
  };
}
