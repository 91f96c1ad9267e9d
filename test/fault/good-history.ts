import type {
  AuditEntry,
  Effect,
  History,
  JobRecord,
  LedgerRecord,
  Order,
  ScheduleRecord,
  Submission,
} from './history.js';

/** A small run in which everything is as it should be, for tests that plant what should not be. */

const ORDER: Order = {
  ...{ n: 1, workMs: 0, failures: 0, blocking: false, maxAttempts: 4, atMostOnce: false },
  ...{ timeoutMs: 60_000, delayMs: 0, key: null },
  ...{ tenant: 'default', queue: 'default', requires: {}, servable: true, bytes: 0, partOf: null },
  call: null,
  program: null,
};

export function order(change: Partial<Order>): Order {
  return { ...ORDER, ...change };
}

export function start(job: string, n: number, fence: number, worker: string, at: number): Effect {
  return { kind: 'start', job, n, fence, worker, tenant: 'default', at, result: null, from: null };
}

export function end(
  job: string,
  n: number,
  fence: number,
  worker: string,
  at: number,
  result: Effect['result'] = 'returned',
): Effect {
  return { kind: 'end', job, n, fence, worker, tenant: 'default', at, result, from: null };
}

const plain: JobRecord = {
  ...{ id: 'plain', n: 1, key: null, state: 'succeeded', runAt: 1_000, atMostOnce: false, result: '{"n":1}' },
  attempts: [{ fence: 1, epoch: 1, outcome: 'succeeded' }],
};
const once: JobRecord = { ...plain, id: 'once', n: 2, atMostOnce: true };
/** Failed, was lost with its worker under another leader, and succeeded. */
const hard: JobRecord = {
  ...plain,
  ...{ id: 'hard', n: 3, key: 'three' },
  attempts: [
    { fence: 1, epoch: 1, outcome: 'failed' },
    { fence: 2, epoch: 1, outcome: 'lost' },
    { fence: 3, epoch: 2, outcome: 'succeeded' },
  ],
};

const submissions: Submission[] = [
  {
    ...{ orders: [order({ n: 1 }), order({ n: 2, atMostOnce: true })], sentAt: 990, answeredAt: 1_000 },
    ...{ outcome: 'ok', ids: ['plain', 'once'] },
  },
  { orders: [order({ n: 3, key: 'three' })], sentAt: 991, answeredAt: 1_050, outcome: 'unknown', ids: [] },
  { orders: [order({ n: 3, key: 'three' })], sentAt: 1_060, answeredAt: 1_070, outcome: 'ok', ids: ['hard'] },
  {
    orders: [order({ n: 4 }), order({ n: 5 })],
    sentAt: 1_100,
    answeredAt: 1_150,
    outcome: 'unknown',
    ids: [],
  },
  { orders: [order({ n: 6 })], sentAt: 1_100, answeredAt: 1_101, outcome: 'refused', ids: [] },
];

const row: LedgerRecord = {
  ...{ at: 2_000, state: 'ran', reason: null, job: 'first', until: null, count: 1, recordedAt: 1_000 },
};
/** Due every second from the first on; the second was skipped and the rest came too late. */
const schedule: ScheduleRecord = {
  ...{ name: 'tick', everyMs: 1_000, overlap: 'skip', createdAt: 1_000, until: 45_500 },
  ledger: [
    row,
    { ...row, at: 3_000, state: 'skipped', reason: 'overlap', job: null },
    {
      ...row,
      at: 4_000,
      until: 14_000,
      count: 11,
      state: 'missed',
      reason: 'downtime',
      job: null,
      recordedAt: 45_000,
    },
    ...Array.from({ length: 31 }, (_, i) => ({ ...row, at: 15_000 + i * 1_000, job: `job-${15 + i}` })),
  ],
  jobs: [
    { id: 'first', occurrence: 2_000, state: 'succeeded' },
    ...Array.from({ length: 31 }, (_, i) => ({
      ...{ id: `job-${15 + i}`, occurrence: 15_000 + i * 1_000, state: 'succeeded' },
    })),
  ],
};

/** Writes of which each is a transaction. */
export function inOwnTransactions(entries: readonly Omit<AuditEntry, 'tx'>[]): AuditEntry[] {
  return entries.map((entry) => ({ tx: entry.seq, ...entry }));
}

/** The history; each call gives one of its own. */
export function goodHistory(): History {
  return {
    ...{ scenario: 'planted', seed: 1, submissions },
    settings: {
      ...{ leaseTtlMs: 1_000, heartbeatMs: 200, workerTimeoutMs: 1_000 },
      ...{ nodes: 3, workers: 2, slots: 10, jobsPerSecond: 10 },
      ...{ workflowsPerSecond: 0, batchesPerSecond: 0, callsPerSecond: 0, programsPerSecond: 0 },
    },
    effects: [
      ...[start('plain', 1, 1, 'w1.1', 1_010), end('plain', 1, 1, 'w1.1', 1_011)],
      ...[start('once', 2, 1, 'w1.1', 1_010), end('once', 2, 1, 'w1.1', 1_012)],
      ...[start('hard', 3, 1, 'w1.1', 1_080), end('hard', 3, 1, 'w1.1', 1_090, 'threw')],
      start('hard', 3, 2, 'w1.1', 1_200),
      ...[start('hard', 3, 3, 'w2.1', 3_000), end('hard', 3, 3, 'w2.1', 3_010)],
    ],
    faults: [
      { kind: 'worker-kill', from: 1_300, to: 1_900, targets: ['w1.1'], effective: true, detail: '' },
      { kind: 'leader-kill', from: 1_500, to: 1_700, targets: ['n1.1'], effective: true, detail: '' },
    ],
    audit: inOwnTransactions([
      { seq: 1, kind: 'term', job: null, fence: null, epoch: 1, writer: 'n1.1', at: 900 },
      { seq: 2, kind: 'claimed', job: 'plain', fence: 1, epoch: 1, writer: 'n1.1', at: 1_005 },
      { seq: 3, kind: 'claimed', job: 'once', fence: 1, epoch: 1, writer: 'n1.1', at: 1_005 },
      { seq: 4, kind: 'freed', job: 'plain', fence: 1, epoch: 1, writer: 'n1.1', at: 1_015 },
      { seq: 5, kind: 'ended', job: 'plain', fence: 1, epoch: 1, writer: 'n1.1', at: 1_015 },
      { seq: 6, kind: 'freed', job: 'once', fence: 1, epoch: 1, writer: 'n1.1', at: 1_016 },
      { seq: 7, kind: 'ended', job: 'once', fence: 1, epoch: 1, writer: 'n1.1', at: 1_016 },
      { seq: 8, kind: 'claimed', job: 'hard', fence: 1, epoch: 1, writer: 'n1.1', at: 1_075 },
      { seq: 9, kind: 'freed', job: 'hard', fence: 1, epoch: 1, writer: 'n1.1', at: 1_095 },
      { seq: 10, kind: 'claimed', job: 'hard', fence: 2, epoch: 1, writer: 'n1.1', at: 1_195 },
      { seq: 11, kind: 'term', job: null, fence: null, epoch: 2, writer: 'n2.1', at: 1_600 },
      { seq: 12, kind: 'freed', job: 'hard', fence: 2, epoch: 1, writer: 'n2.1', at: 2_700 },
      { seq: 13, kind: 'claimed', job: 'hard', fence: 3, epoch: 2, writer: 'n2.1', at: 2_900 },
      { seq: 14, kind: 'freed', job: 'hard', fence: 3, epoch: 2, writer: 'n2.1', at: 3_020 },
      { seq: 15, kind: 'ended', job: 'hard', fence: 3, epoch: 2, writer: 'n2.1', at: 3_020 },
    ]),
    jobs: [plain, once, hard],
    answers: [
      { job: 'plain', fence: 1, outcome: 'succeeded', verdict: 'accepted', at: 1_016 },
      { job: 'hard', fence: 1, outcome: 'failed', verdict: 'accepted', at: 1_096 },
      { job: 'hard', fence: 2, outcome: 'succeeded', verdict: 'stale', at: 3_100 },
      { job: 'hard', fence: 3, outcome: 'succeeded', verdict: 'accepted', at: 3_021 },
    ],
    probes: [{ job: 'hard', fence: 1, status: 409, code: 'STALE_FENCE' }],
    leases: [
      { epoch: 1, holder: 'n1.1', at: 910 },
      { epoch: 2, holder: 'n2.1', at: 1_620 },
    ],
    deaths: [],
    memory: [{ member: 'n1.1', megabytes: 150 }],
    orphans: [],
    load: { seconds: 1, heldBackSeconds: 0 },
    ...{ schedules: [schedule], workflows: [], batches: [], callReports: [] },
    aftermath: { leaders: ['n2.1'], liveNodes: ['n2.1', 'n3.1'], claims: 0, rateBefore: 100, rateAfter: 95 },
  };
}
