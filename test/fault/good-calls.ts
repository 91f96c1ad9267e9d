import { end, inOwnTransactions, order, start } from './good-history.js';
import type { FaultRecord, History, JobRecord, Order } from './history.js';

/**
 * Calls for a good history: one that was answered, one that is made at most once, and one that was handed on before its worker
 * died.
 */

const CALL: NonNullable<Order['call']> = {
  ...{ origin: 'http://127.0.0.1:1', failing: 'error', handsOn: false, timeoutMs: 2_000 },
};

const answered: JobRecord = {
  ...{ id: 'answered', n: 70, key: null, state: 'succeeded', runAt: 5_000, atMostOnce: false, result: null },
  attempts: [{ fence: 1, epoch: 2, outcome: 'succeeded' }],
};
const jobs = [
  answered,
  { ...answered, id: 'called-once', n: 71, atMostOnce: true },
  { ...answered, id: 'taken-on', n: 72 },
];
const orders = [
  order({ n: 70, call: CALL }),
  order({ n: 71, call: CALL, atMostOnce: true }),
  order({ n: 72, call: { ...CALL, handsOn: true }, timeoutMs: 10_000 }),
];

/** The worker of the calls dies when they are made, and comes back. */
export const callerKilled: FaultRecord = {
  ...{ kind: 'worker-kill', from: 5_100, to: 5_300, targets: ['w2.1'], effective: true, detail: '' },
};

export function withCalls(history: History): History {
  const write = { epoch: 2, writer: 'n2.1', fence: 1 };
  return {
    ...history,
    submissions: [
      ...history.submissions,
      { orders, sentAt: 4_990, answeredAt: 5_000, outcome: 'ok', ids: jobs.map(({ id }) => id) },
    ],
    jobs: [...history.jobs, ...jobs],
    effects: [
      ...history.effects,
      ...jobs.map(({ id, n }) => start(id, n, 1, 'w2.1', 5_010)),
      ...jobs.map(({ id, n }) => end(id, n, 1, 'w2.1', id === 'taken-on' ? 6_000 : 5_020)),
    ],
    audit: [
      ...history.audit,
      ...inOwnTransactions([
        ...jobs.map(({ id: job }, index) => ({
          ...{ ...write, seq: 400 + index, kind: 'claimed' as const, job, at: 5_005 },
        })),
        { ...write, seq: 403, kind: 'handed-on', job: 'taken-on', at: 5_020 },
        ...jobs.flatMap(({ id: job }, index) => {
          const at = job === 'taken-on' ? 6_010 : 5_030;
          return [
            { ...write, seq: 404 + index * 2, kind: 'freed' as const, job, at },
            { ...write, seq: 405 + index * 2, kind: 'ended' as const, job, at },
          ];
        }),
      ]),
    ],
    faults: [...history.faults, callerKilled],
    callReports: [{ job: 'taken-on', fence: 1, outcome: 'succeeded', status: 204, code: '', at: 6_015 }],
    answers: [
      ...history.answers,
      { job: 'taken-on', fence: 1, outcome: 'succeeded', verdict: 'accepted', at: 6_015 },
    ],
  };
}
