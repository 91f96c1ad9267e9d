import { describe, expect, it } from 'vitest';
import type { AttemptOutcome } from '../../src/core/job.js';
import { check, loadInvariants, storyOf } from './checker.js';
import { callerKilled, withCalls } from './good-calls.js';
import { withGraphs } from './good-graphs.js';
import { end, goodHistory, inOwnTransactions, order, start } from './good-history.js';
import type {
  AuditEntry,
  BatchRecord,
  FaultRecord,
  History,
  JobRecord,
  Order,
  ScheduleRecord,
  WorkflowRecord,
} from './history.js';

const invariants = await loadInvariants();

/** Good history with something wrong in it. */
type Planted = (good: History) => Partial<History>;

const changeJob = (id: string, change: Partial<JobRecord>): Planted => {
  return ({ jobs }) => ({ jobs: jobs.map((job) => (job.id === id ? { ...job, ...change } : job)) });
};

/** The same with a workflow and a batch in the history. */
const graphs = (plant: Planted): Planted => {
  return (good) => {
    const history = withGraphs(good);
    return { ...history, ...plant(history) };
  };
};

/** The same with calls in the history. */
const calls = (plant: Planted): Planted => {
  return (good) => {
    const history = withCalls(good);
    return { ...history, ...plant(history) };
  };
};

/** The call of a job is made again at a moment. */
const calledAgain = (job: string, n: number, at: number, ...faults: FaultRecord[]): Planted => {
  return calls((good) => ({
    effects: [...good.effects, start(job, n, 2, 'w3.1', at)],
    faults: [...good.faults.filter((fault) => fault !== callerKilled || job === 'taken-on'), ...faults],
  }));
};

/** What was handed on ends like this, at a moment, without a word of its receiver. */
const takenOnEnds = (outcome: AttemptOutcome, at = 6_010): Planted => {
  return calls((good) => ({
    ...changeJob('taken-on', { state: 'failed', attempts: [{ fence: 1, epoch: 2, outcome }] })(good),
    audit: good.audit.map((entry) =>
      entry.job === 'taken-on' && entry.seq > 403 ? { ...entry, at } : entry,
    ),
    answers: good.answers.filter(({ job }) => job !== 'taken-on'),
    callReports: [],
  }));
};

/** What its receiver said was accepted, and is not on record. */
const takenOnWord: Planted = calls((good) =>
  changeJob('taken-on', { state: 'failed', attempts: [{ fence: 1, epoch: 2, outcome: 'timed-out' }] })(good),
);

const changeWorkflow = (change: Partial<WorkflowRecord>): Planted => {
  return graphs(({ workflows }) => ({ workflows: workflows.map((each) => ({ ...each, ...change })) }));
};

const changeBatch = (change: Partial<BatchRecord>): Planted => {
  return graphs(({ batches }) => ({ batches: batches.map((each) => ({ ...each, ...change })) }));
};

const without = (isGone: (entry: AuditEntry) => boolean): Planted => {
  return graphs(({ audit }) => ({ audit: audit.filter((entry) => !isGone(entry)) }));
};

const changeOrder = (n: number, change: Partial<Order>): Planted => {
  return ({ submissions }) => ({
    submissions: submissions.map((submission) => ({
      ...submission,
      orders: submission.orders.map((each) => (each.n === n ? { ...each, ...change } : each)),
    })),
  });
};

const changeSchedule = (change: (schedule: ScheduleRecord) => Partial<ScheduleRecord>): Planted => {
  return ({ schedules }) => ({ schedules: schedules.map((each) => ({ ...each, ...change(each) })) });
};

const withAudit = (entry: Omit<AuditEntry, 'seq' | 'tx' | 'at'>): Planted => {
  return ({ audit }) => ({ audit: [...audit, ...inOwnTransactions([{ seq: 16, at: 3_500, ...entry }])] });
};

/** A schedule whose jobs wait for each other, with the order in which they were claimed. */
const queueing = (...claimed: string[]): Planted => {
  return (history) => ({
    ...changeSchedule(({ ledger }) => ({
      overlap: 'queue',
      ledger: ledger.map((row) => (row.state === 'skipped' ? { ...row, reason: 'paused' } : row)),
    }))(history),
    audit: [
      ...history.audit,
      ...inOwnTransactions(
        claimed.map((job, index) => ({
          ...{
            seq: 16 + index,
            at: 3_500,
            kind: 'claimed' as const,
            job,
            fence: 1,
            epoch: 2,
            writer: 'n2.1',
          },
        })),
      ),
    ],
  });
};

const changeFault = (change: Partial<FaultRecord>): Planted => {
  return ({ faults }) => ({
    faults: faults.map((fault, index) => (index === 1 ? { ...fault, ...change } : fault)),
  });
};

/** The term of the second leader and all that it wrote is lost, and the first one goes on from an older copy. */
const restored: Planted = ({ audit, faults, leases, effects, answers }) => ({
  faults: faults.map((fault) => ({
    ...fault,
    targets: ['postgres', 'w1.1'],
    restored: { copiedAt: 1_510, downAt: 3_300, at: 3_400, lost: audit.filter(({ seq }) => seq > 10) },
  })),
  audit: [
    ...audit.filter(({ seq }) => seq <= 10),
    ...inOwnTransactions([
      { seq: 11, kind: 'term', job: null, fence: null, epoch: 2, writer: 'n3.1', at: 3_450 },
      { seq: 12, kind: 'freed', job: 'hard', fence: 2, epoch: 1, writer: 'n3.1', at: 3_460 },
      { seq: 13, kind: 'claimed', job: 'hard', fence: 3, epoch: 2, writer: 'n3.1', at: 3_470 },
      { seq: 14, kind: 'freed', job: 'hard', fence: 3, epoch: 2, writer: 'n3.1', at: 3_490 },
      { seq: 15, kind: 'ended', job: 'hard', fence: 3, epoch: 2, writer: 'n3.1', at: 3_490 },
    ]),
  ],
  effects: [...effects, start('hard', 3, 3, 'w1.1', 3_480), end('hard', 3, 3, 'w1.1', 3_485)],
  answers,
  leases: [...leases, { epoch: 1, holder: 'n1.1', at: 3_350 }, { epoch: 2, holder: 'n3.1', at: 3_460 }],
});

/** The clock is set back for five seconds, and a queue with a rate of ten a second starts a job at these moments. */
const clockBack = (starts: readonly number[]): Planted => {
  return ({ faults, jobs, audit, submissions }) => {
    const [queue, from, to] = ['limited', 10_000, 15_000];
    const limited = starts.map((at, index) => ({ id: `limited-${index}`, n: 100 + index, at }));
    const orders = limited.map(({ n }) => order({ n, queue }));
    return {
      faults: [
        ...faults,
        {
          ...{ kind: 'clock-back', from, to, targets: ['postgres'], effective: true, detail: '' },
          clockBack: { queue, perSecond: 10, burst: 1, from, to },
        },
      ],
      submissions: [
        ...submissions,
        { orders, sentAt: 9_000, answeredAt: 9_100, outcome: 'ok', ids: limited.map(({ id }) => id) },
      ],
      jobs: [...jobs, ...limited.map(({ id, n }) => ({ ...jobs[0]!, id, n, state: 'failed' as const }))],
      audit: [
        ...audit,
        ...inOwnTransactions(
          limited.map(({ id, at }, index) => ({
            ...{
              seq: 100 + index,
              kind: 'claimed' as const,
              job: id,
              fence: 1,
              epoch: 2,
              writer: 'n2.1',
              at,
            },
          })),
        ),
      ],
    };
  };
};

const everyMs = (step: number): number[] => {
  return Array.from({ length: Math.floor(6_000 / step) }, (_, index) => 10_000 + index * step);
};

/** A member of the batch was lost. */
const lostMember: Planted = (good) => ({
  ...changeJob('m1', { state: 'failed', attempts: [{ fence: 2, epoch: 2, outcome: 'lost' }] })(good),
  batches: good.batches.map((each) => ({ ...each, row: { ...each.row!, state: 'failed' } })),
});

const heldThread: FaultRecord = {
  ...{ kind: 'blocked-loop', from: 4_000, to: 4_200, targets: [], effective: true, detail: '' },
  held: 'w2.1',
};

const slowLink: FaultRecord = {
  ...{ kind: 'postgres-slow', from: 3_500, to: 3_900, targets: ['n2.1'], effective: true, detail: '' },
};

/** The third step of the workflow has a delay, and starts so much before it is over. */
const earlyStep = (byMs: number, ...faults: FaultRecord[]): Planted => {
  return graphs((good) => ({ ...changeOrder(52, { delayMs: 4_070 - 4_013 + byMs })(good), faults }));
};

const planted: Readonly<Record<string, Readonly<Record<string, Planted>>>> = {
  'nothing-lost': {
    'a job that was taken is gone': ({ jobs }) => ({ jobs: jobs.filter(({ id }) => id !== 'once') }),
    'a job never ends': changeJob('plain', { state: 'pending', attempts: [] }),
    'a job is cancelled by nobody': changeJob('plain', { state: 'cancelled' }),
    'a job is started by a worker without the labels that it requires': changeOrder(1, { servable: false }),
    'a job that was taken before the copy is gone after a restore': (good) => ({
      ...restored(good),
      jobs: good.jobs.filter(({ id }) => id !== 'once'),
    }),
    'a job that a restore brought back never ends': (good) => ({
      ...restored(good),
      ...changeJob('hard', { state: 'pending', attempts: [] })(good),
    }),
    'a job is claimed for ever': changeJob('plain', { state: 'running', attempts: [] }),
    'a success has no effect': ({ effects }) => ({
      effects: effects.filter(({ kind, job }) => kind === 'start' || job !== 'plain'),
    }),
    'a success has the effect of another attempt': ({ effects }) => ({
      effects: effects.map((effect) =>
        effect.job === 'hard' && effect.kind === 'end' && effect.fence === 3
          ? { ...effect, fence: 2 }
          : effect,
      ),
    }),
    'a call counts as done that its receiver has not answered': calls(({ effects }) => ({
      effects: effects.filter(({ kind, job }) => kind === 'start' || job !== 'answered'),
    })),
    'what was handed on is never ended': calls(changeJob('taken-on', { state: 'running', attempts: [] })),
  },
  'good-requests': {
    'a node refused a submission': ({ submissions }) => ({
      submissions: submissions.map((each) =>
        each.outcome === 'refused' ? { ...each, refusal: '{"code":"INVALID_REQUEST"}' } : each,
      ),
    }),
  },
  'whole-or-absent': {
    'half a submission is stored': ({ jobs }) => ({ jobs: [...jobs, { ...jobs[0]!, id: 'half', n: 4 }] }),
    'a refused submission is stored': ({ jobs }) => ({
      jobs: [...jobs, { ...jobs[0]!, id: 'refused', n: 6 }],
    }),
    'a key became two jobs': ({ jobs }) => ({ jobs: [...jobs, { ...jobs[2]!, id: 'hard-again' }] }),
  },
  'at-most-once': {
    'an at-most-once job that no restore has touched starts again': (good) => ({
      ...restored(good),
      effects: [...good.effects, start('once', 2, 2, 'w2.1', 3_500)],
    }),
    'an at-most-once job starts again': ({ effects }) => ({
      effects: [...effects, start('once', 2, 2, 'w2.1', 2_500)],
    }),
    'an at-most-once call is made again': calledAgain('called-once', 71, 9_000),
  },
  'retries-have-a-reason': {
    'an attempt is repeated although nothing had happened to it': ({ effects }) => ({
      effects: [...effects, start('plain', 1, 2, 'w2.1', 1_200)],
    }),
    'the fault hit another worker': ({ faults }) => ({
      faults: faults.map((fault) => ({ ...fault, targets: ['w9.1'] })),
    }),
    'the fault came later': ({ faults }) => ({
      faults: faults.map((fault) => ({ ...fault, from: fault.from + 5_000, to: fault.to + 5_000 })),
    }),
    'a call is made again although it was answered': calledAgain('answered', 70, 5_500),
    'a call is made again because of a receiver that fell later': calledAgain('answered', 70, 5_500, {
      ...{ ...callerKilled, kind: 'receiver-down', targets: ['sink.1'], from: 5_600 },
    }),
    'what was handed on is called again because its worker died': calledAgain('taken-on', 72, 9_000),
    'a call is made twice under one fence': calls(({ effects }) => ({
      effects: [...effects, start('answered', 70, 1, 'w2.1', 5_015)],
    })),
    'a fence starts twice': ({ effects }) => ({ effects: [...effects, start('hard', 3, 3, 'w2.1', 3_005)] }),
  },
  'handed-on': {
    'an attempt is lost with its worker': takenOnEnds('lost'),
    'an attempt times out before its time': takenOnEnds('timed-out', 8_000),
    'an attempt fails that its receiver has not failed': takenOnEnds('failed'),
    'an attempt succeeds that its receiver has not completed': calls(({ effects }) => ({
      effects: effects.filter(({ kind, job }) => kind === 'start' || job !== 'taken-on'),
    })),
    'an attempt never ends': calls(changeJob('taken-on', { state: 'running', attempts: [] })),
    'a receiver is refused': calls(({ callReports }) => ({
      callReports: callReports.map((report) => ({ ...report, status: 403, code: 'FORBIDDEN' })),
    })),
  },
  schedules: {
    'an occurrence has two jobs': changeSchedule(({ jobs }) => ({
      jobs: [...jobs, { ...jobs[0]!, id: 'again' }],
    })),
    'an occurrence is missing': changeSchedule(({ ledger }) => ({ ledger: ledger.slice(1) })),
    'an occurrence is on record twice': changeSchedule(({ ledger }) => ({
      ledger: [...ledger, { ...ledger[1]!, at: 5_000 }],
    })),
    'a moment that was never due': changeSchedule(({ ledger }) => ({
      ledger: [...ledger, { ...ledger[0]!, at: 46_500 }],
    })),
    'occurrences were missed although somebody was there': changeSchedule(({ ledger }) => ({
      ledger: ledger.map((row) => ({ ...row, recordedAt: 20_000 })),
    })),
    'one was skipped that may overlap': changeSchedule(() => ({ overlap: 'allow' })),
    'a job is left over': changeSchedule(({ jobs }) => ({
      jobs: jobs.map((job) => ({ ...job, state: 'live' })),
    })),
    'those that wait for each other were claimed in another order': queueing('job-15', 'first'),
  },
  workflows: {
    'a step is claimed before the one that it waits for has ended': graphs(({ audit }) => ({
      audit: audit.map((entry) =>
        entry.job === 'b' && entry.kind === 'ended' ? { ...entry, seq: 900 } : entry,
      ),
    })),
    'a step starts before the one that it waits for has returned': graphs((good) => ({
      ...changeJob('a', { state: 'succeeded' })(good),
      effects: [...good.effects, end('a', 50, 1, 'w2.1', 4_500), start('b', 51, 1, 'w2.1', 4_400)],
    })),
    'a step is skipped although its condition holds': graphs(changeJob('c', { state: 'skipped' })),
    'a step runs although its condition does not hold': graphs(({ audit }) => ({
      audit: [...audit, { ...audit.at(-1)!, seq: 300, kind: 'claimed', job: 'b', fence: 1 }],
    })),
    'a step that was skipped has started': graphs(({ effects }) => ({
      effects: [...effects, start('b', 51, 1, 'w2.1', 4_400)],
    })),
    'a step gets another result than the one that it refers to': graphs(({ workflows }) => ({
      workflows: workflows.map(({ steps, ...rest }) => ({
        ...rest,
        steps: steps.map((step) => (step.name === 'c' ? { ...step, refersTo: 'b' } : step)),
      })),
    })),
    'a step fails that should not': graphs(changeJob('c', { state: 'failed' })),
    'a step runs after a failure that stops the workflow': changeWorkflow({ onFailure: 'stop' }),
    'a workflow never ends': changeWorkflow({ row: { id: 'graph', state: 'running', stepsLeft: 0 } }),
    'a workflow ends twice': graphs(({ audit }) => ({
      audit: [...audit, { ...audit.at(-1)!, seq: 300, job: 'graph' }],
    })),
    'a workflow ends with steps left': changeWorkflow({
      row: { id: 'graph', state: 'failed', stepsLeft: 1 },
    }),
    'a workflow with a failure succeeds': changeWorkflow({
      row: { id: 'graph', state: 'succeeded', stepsLeft: 0 },
    }),
    'a workflow is cancelled by nobody': changeWorkflow({
      row: { id: 'graph', state: 'cancelled', stepsLeft: 0 },
    }),
    'a workflow goes on although it was cancelled': changeWorkflow({
      cancel: { sentAt: 4_001, answeredAt: 4_002, outcome: 'ok' },
    }),
    'a workflow is stored without its steps': graphs(({ jobs }) => ({
      jobs: jobs.filter(({ id }) => id !== 'b'),
    })),
    'steps are stored without their workflow': changeWorkflow({ row: null }),
  },
  batches: {
    'members are claimed one after another': graphs(({ audit }) => ({
      audit: audit.map((entry) => (entry.job === 'm2' ? { ...entry, tx: entry.tx + 100 } : entry)),
    })),
    'a member is claimed alone': without(
      ({ job, kind, tx }) => job === 'm2' && kind === 'claimed' && tx === 206,
    ),
    'a start is taken back although a member had begun': graphs(({ effects }) => ({
      effects: [...effects, start('m1', 60, 1, 'w2.1', 4_110)],
    })),
    'a member starts that was never claimed': graphs(({ effects }) => ({
      effects: [...effects, start('m1', 60, 3, 'w2.1', 4_130)],
    })),
    'a batch never ends': changeBatch({ row: { id: 'gang', state: 'running', error: null } }),
    'a batch ends twice': graphs(({ audit }) => ({ audit: [...audit, { ...audit.at(-1)!, seq: 300 }] })),
    'a batch fails whose members have all succeeded': changeBatch({
      row: { id: 'gang', state: 'failed', error: null },
    }),
    'a batch is cancelled by nobody': graphs((good) => ({
      ...changeJob('m1', { state: 'cancelled' })(good),
      batches: good.batches.map((each) => ({ ...each, row: { ...each.row!, state: 'cancelled' } })),
    })),
    'a member is lost although nothing had happened to its worker': graphs(lostMember),
    'a member is lost that had begun on a worker whose thread was held': graphs((good) => ({
      ...lostMember(good),
      faults: [...good.faults, heldThread],
    })),
    'a batch gives up although it may wait for ever': changeBatch({
      row: { id: 'gang', state: 'failed', error: 'BATCH_NOT_STARTED' },
    }),
    'a batch starts that nobody could run': graphs((good) => changeOrder(61, { servable: false })(good)),
    'a batch is stored without a member': graphs(({ jobs }) => ({
      jobs: jobs.filter(({ id }) => id !== 'm2'),
    })),
    'members are stored without their batch': changeBatch({ row: null }),
  },
  'one-owner': {
    'a job is claimed after its end': withAudit({
      ...{ kind: 'claimed', job: 'plain', fence: 2, epoch: 2, writer: 'n2.1' },
    }),
    'a job is claimed twice at once': ({ audit }) => ({ audit: audit.filter(({ seq }) => seq !== 12) }),
    'a fence is used again': ({ audit }) => ({
      audit: audit.map((entry) => (entry.seq === 13 ? { ...entry, fence: 2 } : entry)),
    }),
    'a job ends twice': withAudit({ kind: 'ended', job: 'hard', fence: 3, epoch: 2, writer: 'n2.1' }),
    'an old attempt ends the job': ({ audit }) => ({
      audit: audit
        .filter(({ seq }) => seq !== 14)
        .map((entry) => (entry.seq === 15 ? { ...entry, fence: 2 } : entry)),
    }),
    'two results are accepted': ({ answers }) => ({
      answers: answers.map((answer) => ({ ...answer, verdict: 'accepted' as const })),
    }),
    'the word of a receiver is accepted and not on record': takenOnWord,
    'an accepted result is not on record': changeJob('plain', {
      attempts: [{ fence: 1, epoch: 1, outcome: 'failed' }],
    }),
    'the record goes on after a success': changeJob('plain', {
      attempts: [
        { fence: 1, epoch: 1, outcome: 'succeeded' },
        { fence: 2, epoch: 1, outcome: 'failed' },
      ],
    }),
    'fences on record do not grow': changeJob('plain', {
      attempts: [
        { fence: 1, epoch: 1, outcome: 'failed' },
        { fence: 1, epoch: 1, outcome: 'succeeded' },
      ],
    }),
  },
  'epochs-grow': {
    'a term that was lost with a newer database is taken again by its holder': (good) => {
      const { audit = [], ...rest } = restored(good);
      return {
        ...rest,
        audit: audit.map((entry) => (entry.seq > 10 ? { ...entry, writer: 'n2.1' } : entry)),
      };
    },
    'the lease goes back': ({ leases }) => ({ leases: [...leases, { epoch: 1, holder: 'n1.1', at: 3_200 }] }),
    'a term has an old epoch': withAudit({
      ...{ kind: 'term', job: null, fence: null, epoch: 2, writer: 'n3.1' },
    }),
    'an old leader claims': withAudit({
      ...{ kind: 'claimed', job: 'other', fence: 1, epoch: 1, writer: 'n1.1' },
    }),
    'an old leader ends a job': withAudit({
      ...{ kind: 'ended', job: 'other', fence: 1, epoch: 1, writer: 'n1.1' },
    }),
    'the leader claims under its term before': withAudit({
      ...{ kind: 'claimed', job: 'other', fence: 1, epoch: 1, writer: 'n2.1' },
    }),
  },
  'stale-refused': {
    'a stale result is taken': ({ probes }) => ({ probes: [{ ...probes[0]!, status: 204, code: '' }] }),
    'a stale result is refused as something else': ({ probes }) => ({
      probes: [{ ...probes[0]!, status: 404, code: 'JOB_NOT_FOUND' }],
    }),
    'a stale result is stored': changeJob('hard', { result: '{"staleProbe":true}' }),
    'a result counts that was called stale': ({ answers }) => ({
      answers: [...answers, { ...answers[3]!, verdict: 'stale' as const }],
    }),
  },
  lateness: {
    'a job waits although there was nothing but load': ({ faults, effects }) => ({
      faults: faults.map((fault) => ({ ...fault, to: 90_000, broken: null })),
      effects: effects.map((effect) =>
        effect.job === 'plain' ? { ...effect, at: effect.at + 60_000 } : effect,
      ),
    }),
    'a job waits until a later fault frees it': ({ faults, effects }) => ({
      faults: [...faults, { ...faults[1]!, from: 55_000, to: 62_000 }],
      effects: effects.map((effect) =>
        effect.job === 'plain' ? { ...effect, at: effect.at + 60_000 } : effect,
      ),
    }),
    'a step starts before its delay is over': earlyStep(100),
    'a step starts long before its delay is over': earlyStep(1_000, slowLink),
    'a job starts early': changeJob('plain', { runAt: 1_500 }),
    'a job that was tried again started early': ({ submissions }) => ({
      submissions: submissions.map((submission) => ({
        ...submission,
        orders: submission.orders.map((each) => (each.n === 3 ? order({ ...each, delayMs: 1_000 }) : each)),
      })),
    }),
    'a job is passed over while others that were due later start': (good) =>
      backlog(good, 60_000, 'overtaken'),
    'a job waits for a backlog that nobody works off': (good) => backlog(good, 60_000, 'idle'),
    'a job starts long after it was due and nothing was broken': ({ effects }) => ({
      effects: effects.map((effect) =>
        effect.job === 'plain' ? { ...effect, at: effect.at + 60_000 } : effect,
      ),
    }),
  },
  'takeover-in-time': {
    'a new leader starts nothing in time': changeFault({
      leaderGone: { epoch: 1, at: 1_500, withinMs: 1_400 },
    }),
    'a new leader starts nothing at all': changeFault({
      leaderGone: { epoch: 2, at: 1_500, withinMs: 60_000 },
    }),
  },
  'term-kept': {
    'load costs the term': changeFault({ broken: null, targets: [] }),
    'load costs the term before anything is broken': changeFault({ broken: { from: 1_650, to: 1_700 } }),
  },
  'no-orphans': {
    'a program of a worker that was killed lives': () => ({ orphans: ['4711 /w1/exec/w1/cache/abc'] }),
  },
  'memory-bounded': {
    'a node uses far too much': () => ({ memory: [{ member: 'n1.1', megabytes: 1_700 }] }),
  },
  'tenants-apart': {
    "a job reaches another tenant's worker": ({ effects }) => ({
      effects: effects.map((effect) => (effect.job === 'plain' ? { ...effect, tenant: 'stranger' } : effect)),
    }),
  },
  rates: {
    'a queue stands still while the clock is set back': clockBack([10_000, 10_100]),
    'a queue goes on at a third of its rate while the clock is set back': clockBack(everyMs(300)),
    'a queue starts twice as many as it may': clockBack(everyMs(50)),
  },
  'nobody-dies': {
    'a node ends by itself': () => ({ deaths: [{ member: 'n1.1', at: 1_200, detail: 'exit code 1' }] }),
  },
  'it-recovers': {
    'nobody leads': ({ aftermath }) => ({ aftermath: { ...aftermath, leaders: [] } }),
    'two lead': ({ aftermath }) => ({ aftermath: { ...aftermath, leaders: ['n2.1', 'n3.1'] } }),
    'a dead node leads': ({ aftermath }) => ({ aftermath: { ...aftermath, leaders: ['n1.1'] } }),
    'a claim is left over': ({ aftermath }) => ({ aftermath: { ...aftermath, claims: 1 } }),
    'it has become slow': ({ aftermath }) => ({ aftermath: { ...aftermath, rateAfter: 80 } }),
  },
};

/** How a backlog of a minute was worked off at the usual rate before the last of its jobs started. */
type Working = 'in order' | 'overtaken' | 'idle';

/** Good history followed by a backlog: jobs that all became due at once and started one after another. */
function backlog({ jobs, effects, aftermath }: History, forMs: number, working: Working): Partial<History> {
  const [due, everyMs] = [10_000, 1_000 / aftermath.rateBefore];
  const late: JobRecord[] = [];
  for (let at = 0; at <= forMs; at += everyMs) {
    const isLast = at + everyMs > forMs;
    const runAt = working === 'overtaken' && !isLast ? due + at : due;
    late.push({ ...jobs[0]!, id: `late-${late.length}`, n: 100 + late.length, runAt });
  }
  const kept = working === 'idle' ? late.filter((_, index) => index % 4 === 0) : late;
  const step = forMs / kept.length;
  const started = kept.flatMap(({ id, n }, index) => [
    start(id, n, 1, 'w2.1', due + 10 + index * step),
    end(id, n, 1, 'w2.1', due + 11 + index * step),
  ]);
  return { jobs: [...jobs, ...kept], effects: [...effects, ...started] };
}

describe('the checker', () => {
  it('has nothing to say about a good history', () => {
    expect(check(goodHistory(), invariants)).toEqual([]);
  });

  it('is tested for every invariant', () => {
    expect(Object.keys(planted).sort()).toEqual(invariants.map(({ name }) => name).sort());
  });

  it('tells the whole story of a job in order', () => {
    const story = storyOf(goodHistory(), 'hard');
    expect(story[0]).toContain('submitted (unknown)');
    expect(story.filter((line) => line.includes('claimed'))).toHaveLength(3);
    expect(story.join('\n')).toContain('fault worker-kill');
    expect(story.at(-1)).toContain('in the tables');
  });

  it('excuses a late start by a backlog that is worked off in order at the full rate', () => {
    const good = goodHistory();
    expect(check({ ...good, ...backlog(good, 60_000, 'in order') }, invariants)).toEqual([]);
  });

  it('excuses what a restored copy of the database knows nothing of', () => {
    const good = goodHistory();
    expect(check({ ...good, ...restored(good) }, invariants)).toEqual([]);
    const submissions = good.submissions.map((submission) => ({ ...submission, answeredAt: 1_600 }));
    const without = { ...good, ...restored(good), submissions, jobs: [] };
    expect(check(without, invariants)).toEqual([]);
  });

  it('has nothing to say about jobs that waited for each other and were claimed in order', () => {
    const good = goodHistory();
    expect(check({ ...good, ...queueing('first', 'job-15')(good) }, invariants)).toEqual([]);
  });

  it('has nothing to say about a queue that keeps its rate while the clock is set back', () => {
    const good = goodHistory();
    const found = check({ ...good, ...clockBack(everyMs(100))(good) }, invariants);
    expect(found.filter(({ invariant }) => invariant === 'rates')).toEqual([]);
  });

  it('has nothing to say about a workflow and a batch that went as they should', () => {
    expect(check(withGraphs(goodHistory()), invariants)).toEqual([]);
  });

  it('has nothing to say about calls that went as they should', () => {
    expect(check(withCalls(goodHistory()), invariants)).toEqual([]);
  });

  it.each<[string, Planted]>([
    ['the death of its worker', calledAgain('answered', 70, 7_600, callerKilled)],
    ['the end of its time', calledAgain('answered', 70, 7_020)],
    [
      'the fall of its receiver',
      calledAgain('answered', 70, 5_500, { ...callerKilled, from: 5_012, targets: ['sink.1'] }),
    ],
    [
      'a worker that could not read the answer',
      calledAgain('answered', 70, 5_500, { ...callerKilled, from: 5_012, targets: [], held: 'w2.1' }),
    ],
    ['the deadline of what was handed on', calledAgain('taken-on', 72, 15_100)],
  ])('excuses a further call by %s', (_, plant) => {
    const good = goodHistory();
    const found = check({ ...good, ...plant(good) }, invariants);
    expect(found.filter(({ invariant }) => invariant === 'retries-have-a-reason')).toEqual([]);
  });

  it('excuses the end of what was handed on at its deadline', () => {
    const good = goodHistory();
    const found = check({ ...good, ...takenOnEnds('timed-out', 15_010)(good) }, invariants);
    expect(found.filter(({ invariant }) => invariant === 'handed-on')).toEqual([]);
  });

  it('excuses the loss of a member that a worker with a held thread never began', () => {
    const good = withGraphs(goodHistory());
    const effects = good.effects.filter(({ job }) => job !== 'm1');
    const history = { ...good, ...lostMember(good), effects, faults: [...good.faults, heldThread] };
    expect(check(history, invariants).filter(({ invariant }) => invariant === 'batches')).toEqual([]);
  });

  it('excuses a step that starts a moment early by a clock that lagged behind a slow link', () => {
    const good = goodHistory();
    const history = { ...good, ...earlyStep(100, slowLink)(good) };
    expect(check(history, invariants).filter(({ invariant }) => invariant === 'lateness')).toEqual([]);
  });

  it('lets a job be cancelled that nobody can run', () => {
    const good = goodHistory();
    const effects = good.effects.filter(({ job }) => job !== 'plain');
    const cancelled = { ...good, ...changeJob('plain', { state: 'cancelled', attempts: [] })(good), effects };
    const answers = good.answers.filter(({ job }) => job !== 'plain');
    const history = { ...cancelled, ...changeOrder(1, { servable: false })(good), answers };
    expect(check(history, invariants)).toEqual([]);
  });

  it('excuses a further start by a clock that leapt ahead', () => {
    const good = goodHistory();
    // Its first attempt was claimed while the clock was wrong, and started after it was right again.
    const effects = [
      ...good.effects.filter(({ job }) => job !== 'plain'),
      start('plain', 1, 1, 'w1.1', 9_000),
      start('plain', 1, 2, 'w2.1', 8_000),
    ];
    const clock = { queue: 'limited', perSecond: 10, burst: 1, from: 1_000, to: 1_100 };
    const broken = check({ ...good, effects, ...changeFault({ clockBack: clock })(good) }, invariants);
    expect(broken.filter(({ invariant }) => invariant === 'retries-have-a-reason')).toEqual([]);
  });

  it('excuses a further start by a timeout', () => {
    const good = goodHistory();
    const effects = [
      ...good.effects,
      end('plain', 1, 1, 'w1.1', 1_050, 'stopped'),
      start('plain', 1, 2, 'w2.1', 62_000),
    ];
    const broken = check({ ...good, effects }, invariants);
    expect(broken.filter(({ invariant }) => invariant === 'retries-have-a-reason')).toEqual([]);
  });
});

for (const [invariant, violations] of Object.entries(planted)) {
  describe(`${invariant} is violated when`, () => {
    it.each(Object.entries(violations))('%s', (_, plant) => {
      const good = goodHistory();
      const found = check({ ...good, ...plant(good) }, invariants);
      expect(found.map((violation) => violation.invariant)).toContain(invariant);
    });
  });
}
