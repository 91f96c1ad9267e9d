import pg from 'pg';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { Term } from '../cluster/term.js';
import { resolveConfig } from '../core/config.js';
import { SILENT_LOG } from '../core/log.js';
import type { ClaimAnswer } from '../core/wire.js';
import type { Pool } from '../store/database.js';
import type { JobRow } from '../store/job-row.js';
import type { Waiting } from '../store/read-backlog.js';
import { Claimer } from './claimer.js';
import { LeaderState } from './leader-state.js';
import { type Poll, WorkerSession } from './worker-session.js';

interface Query {
  readonly name: string;
  readonly values: unknown[];
}

const QUEUES = ['red', 'green', 'blue'].map((name, i) => ({
  id: i + 1,
  tenant: 'acme',
  name,
  paused: false,
  created_at: 0,
  weight: 1,
  concurrency: null,
  key_concurrency: 1,
  rate_limit: null,
  rate_per: null,
  rate_burst: null,
  full_at: 0,
  debt: 0,
}));
const NEEDS = ['mail', 'bill'].map((handler, i) => ({
  id: i + 1,
  tenant: 'acme',
  target: 'handler',
  handler,
  labels: '',
}));

/** The id of a job or a worker that the tests call by a name; ids are in the order of the names. */
function idOf(name: string): string {
  const hex = Buffer.from(name).toString('hex').padEnd(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function nameOf(id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString().replaceAll('\0', '');
}

/** The names of the jobs whose ids a statement got, as texts or as an array in binary form. */
function namesIn(ids: unknown): string[] {
  if (!Buffer.isBuffer(ids)) return (ids as string[]).map(nameOf);
  const [header, length, bytes] = [20, 4, 16];
  const names: string[] = [];
  for (let at = header + length; at < ids.length; at += length + bytes)
    names.push(nameOf(ids.toString('hex', at, at + bytes)));
  return names;
}

/** A leader whose claims all succeed but for the jobs that are gone, without a database. */
class Leader {
  readonly clock = new TestClock();
  /** Jobs that the claim finds no more. */
  readonly gone = new Set<string>();
  /** Jobs whose row is not what this process stored. */
  readonly edited = new Set<string>();
  /** What was claimed without reading it. */
  readonly known: string[][] = [];
  /** Answers instead of the table when it is set. */
  failWith: Error | undefined;
  /** What happens while a claim is under way. */
  meanwhile: () => void = () => undefined;
  /** Jobs whose claims were made for nobody. */
  readonly orphans: string[] = [];
  readonly batches: string[][] = [];
  /** What came with the jobs that were handed over. */
  readonly payloads: unknown[] = [];
  readonly onExpired = vi.fn();
  readonly state: LeaderState;
  readonly claimer: Claimer;
  private readonly fences = new Map<string, Waiting>();

  constructor() {
    const hot = { query: (query: Query) => this.answer(query) } as unknown as Pool;
    this.state = new LeaderState({
      term: new Term(0, 1, 'node-a', Number.POSITIVE_INFINITY),
      hot,
      pool: hot,
      patient: hot,
      clock: this.clock,
      config: resolveConfig({}, {}, () => '').config,
      log: SILENT_LOG,
      secret: Buffer.alloc(32),
      renounce: (reason) => this.state.term.end(reason),
    });
    this.claimer = new Claimer(this.state, {
      onExpired: this.onExpired,
      onDrained: () => undefined,
      onOrphans: (orphans) => this.orphans.push(...orphans.map((each) => nameOf(each.id))),
      startGang: () => Promise.resolve(false),
    });
  }

  async learn(): Promise<this> {
    const names = [1, 2, 3].flatMap((queue) => [1, 2].map((needs) => ({ queue, needs })));
    await this.state.directory.learn(names);
    return this;
  }

  add(name: string, change: Partial<Waiting> = {}): void {
    const waiting: Waiting = {
      id: idOf(name),
      tenant: 'acme',
      queue: 1,
      needs: 1,
      lane: 0,
      key: null,
      rank: 5,
      runAt: this.clock.now(),
      fence: 1,
      startBefore: null,
      sizeKib: 0,
      ...change,
    };
    this.fences.set(name, waiting);
    this.state.backlog.add(waiting);
  }

  session(name: string, tasks = ['mail', 'bill'], queues = ['red', 'green', 'blue']): WorkerSession {
    const registration = { name, queues, slots: 100, targets: ['handler'] as const, tasks, labels: {} };
    const session = new WorkerSession(idOf(name), 'acme', JSON.stringify(registration), 0, this.clock);
    this.state.openSession(session);
    return session;
  }

  /** A worker that asks for work; what it gets is in the array when it has been answered. */
  poll(session: WorkerSession, max: number, isWelcome: Poll['isWelcome'] = () => true): string[] {
    const got: string[] = [];
    const poll: Poll = {
      isWelcome,
      session,
      max,
      limits: null,
      given: [],
      settled: false,
      reserved: false,
      isChecked: false,
      settle: (answer: ClaimAnswer) => {
        poll.settled = true;
        session.polls.delete(poll);
        got.push(...answer.jobs.map((job) => nameOf(job.jobId)));
        this.payloads.push(...answer.jobs.map((job) => job.payload));
      },
      fail: () => {
        poll.settled = true;
        session.polls.delete(poll);
      },
    };
    session.polls.add(poll);
    return got;
  }

  private async answer({ name, values }: Query): Promise<{ rows: unknown[] }> {
    switch (name) {
      case 'read-queues':
        return { rows: QUEUES };
      case 'read-needs':
        return { rows: NEEDS };
      case 'read-tenants':
        return { rows: [] };
      case 'claim-jobs':
        return { rows: this.claim(namesIn(values[8])) };
      case 'claim-known-jobs':
        return { rows: [this.claimKnown(namesIn(values[8]))] };
      case 'read-waiting':
        return {
          rows: namesIn(values[0]).flatMap((name) => (this.gone.has(name) ? [] : this.fences.get(name)!)),
        };
      default:
        return expect.unreachable(`no answer to ${name}`);
    }
  }

  private claimKnown(names: string[]): { changed: number; ids: string[] | null } {
    if (this.failWith) throw this.failWith;
    this.known.push(names);
    const claimed = names.filter((name) => !this.edited.has(name));
    return { changed: claimed.length, ids: claimed.length < names.length ? claimed.map(idOf) : null };
  }

  private claim(names: string[]): unknown[] {
    if (this.failWith) throw this.failWith;
    this.batches.push(names);
    this.meanwhile();
    const rows = names
      .filter((name) => !this.gone.has(name))
      .map((name) => ({
        id: idOf(name),
        task: 'mail',
        target: null,
        payload: 'null',
        timeoutMs: 1_000,
        failures: 0,
        losses: 0,
        maxAttempts: 4,
        maxLosses: 3,
        atMostOnce: false,
        backoff: null,
        runAt: this.clock.now(),
        lateBy: null,
      }));
    return rows.length > 0 ? rows : [{ id: null }];
  }
}

/** A job as it was stored; its payload tells it from what the table says. */
function storedRow(name: string): JobRow {
  const definition = {
    ...{ tenant: 'acme', queue: 1, needs: 1, rank: 5, run_at: 0, lane: 0, created_at: 0, created_by: 'test' },
    ...{ max_attempts: 4, max_losses: 3, at_most_once: false, timeout_ms: 1_000, start_before: null },
    ...{
      task: 'mail',
      target: null,
      backoff: null,
      requires: null,
      traceparent: null,
      key: null,
      concurrency_key: null,
    },
  };
  return { id: idOf(name), payload: JSON.stringify(`of ${name}`), definition };
}

/** What Postgres says when it refuses a statement as a whole. */
function refusal(): pg.DatabaseError {
  const error = new pg.DatabaseError('deadlock detected', 0, 'error');
  error.code = '40P01';
  return error;
}

let leader: Leader;
afterEach(() => leader.state.dispose());

describe('claiming', () => {
  it('leaves out a job that is not of the tenant of the worker, and starts the others', async () => {
    leader = await new Leader().learn();
    // In a queue of acme, as no row ever should be.
    leader.add('strange', { tenant: 'other' });
    leader.add('own');
    const got = leader.poll(leader.session('w'), 5);
    await leader.claimer.runOnce();
    expect(got).toEqual(['own']);
    expect(leader.batches).toEqual([['own']]);
  });

  it('lets queues take turns, so that a flood in one delays no other', async () => {
    leader = await new Leader().learn();
    for (let i = 0; i < 50; i++) leader.add(`red-${i}`, { queue: 1, rank: 1 });
    for (let i = 0; i < 2; i++) leader.add(`green-${i}`, { queue: 2 });
    leader.add('blue-0', { queue: 3, rank: 9 });
    const got = leader.poll(leader.session('w'), 6);
    await leader.claimer.runOnce();
    expect(got.map((id) => id.split('-')[0])).toEqual(['red', 'green', 'blue', 'red', 'green', 'red']);
  });

  it('gives priority its way inside a queue, also over what the jobs need', async () => {
    leader = await new Leader().learn();
    leader.add('low', { needs: 1, rank: 9 });
    leader.add('high', { needs: 2, rank: 1 });
    leader.add('middle', { needs: 1, rank: 5 });
    const got = leader.poll(leader.session('w'), 10);
    await leader.claimer.runOnce();
    expect(got).toEqual(['high', 'middle', 'low']);
  });

  it('spreads work evenly over the workers that wait, each within its bounds', async () => {
    leader = await new Leader().learn();
    for (let i = 0; i < 9; i++) leader.add(`job-${i}`);
    const [a, b, c] = ['a', 'b', 'c'].map((name, i) => leader.poll(leader.session(name), [10, 1, 10][i]!));
    await leader.claimer.runOnce();
    expect([a!.length, b!.length, c!.length]).toEqual([4, 1, 4]);
    expect(leader.batches).toHaveLength(1);
  });

  it('takes no more in one statement, and gives no more in one answer, than a bounded size', async () => {
    leader = await new Leader().learn();
    for (let i = 0; i < 40; i++) leader.add(`job-${i}`, { sizeKib: 250 });
    const polls = Array.from({ length: 6 }, (_, i) => leader.poll(leader.session(`w-${i}`), 100));
    await leader.claimer.runOnce();
    // Four of them fill an answer but for a little, so it takes a fifth; seventeen fill a statement.
    expect(polls.map((got) => got.length)).toEqual([3, 3, 3, 3, 3, 2]);
    expect(leader.batches.map((batch) => batch.length)).toEqual([17]);
    const next = leader.poll(leader.session('next'), 100);
    await leader.claimer.runOnce();
    expect(next).toHaveLength(5);
    leader.add('huge', { sizeKib: 100_000, rank: 1 });
    const alone = leader.poll(leader.session('alone'), 100);
    await leader.claimer.runOnce();
    expect(alone).toEqual(['huge']);
  });

  it('gives a worker only what it can run, from queues that it serves', async () => {
    leader = await new Leader().learn();
    leader.add('red-mail', { queue: 1, needs: 1 });
    leader.add('red-bill', { queue: 1, needs: 2 });
    leader.add('green-bill', { queue: 2, needs: 2 });
    const bills = leader.poll(leader.session('bills', ['bill'], ['red']), 10);
    const rivals = leader.session('rival');
    Object.assign(rivals, { tenant: 'rival' });
    const nothing = leader.poll(rivals, 10);
    await leader.claimer.runOnce();
    expect([bills, nothing]).toEqual([['red-bill'], []]);
  });

  it('starts nothing while dispatch or the queue is paused, or for a worker that drains', async () => {
    leader = await new Leader().learn();
    leader.add('red', { queue: 1 });
    leader.add('green', { queue: 2 });
    const session = leader.session('w');
    const got = leader.poll(session, 10);
    leader.state.paused = true;
    await leader.claimer.runOnce();
    leader.state.paused = false;
    session.draining = true;
    await leader.claimer.runOnce();
    expect([got, leader.batches]).toEqual([[], []]);
    session.draining = false;
    leader.state.directory.setQueue({ ...QUEUES[0]!, paused: true });
    leader.state.shares.queueChanged(1);
    await leader.claimer.runOnce();
    expect(got).toEqual(['green']);
  });

  it('hands over only what the claim returned, and lets the worker wait on for the rest', async () => {
    leader = await new Leader().learn();
    leader.add('gone');
    leader.gone.add('gone');
    const got = leader.poll(leader.session('w'), 10);
    await leader.claimer.runOnce();
    expect(got).toEqual([]);
    expect(leader.state.turns.has('gone')).toBe(false);
    leader.add('there');
    await leader.claimer.runOnce();
    expect(got).toEqual(['there']);
    expect([...leader.state.running.keys()].map(nameOf)).toEqual(['there']);
  });

  it('keeps the polls of a claim under way to itself, and gives back what was claimed for one that ended', async () => {
    leader = await new Leader().learn();
    leader.add('job');
    const session = leader.session('w');
    const got = leader.poll(session, 10);
    const [poll] = session.polls;
    leader.meanwhile = () => {
      expect(poll!.reserved).toBe(true);
      poll!.settle({ epoch: 1, jobs: [] });
    };
    await leader.claimer.runOnce();
    expect([got, leader.orphans, poll!.reserved]).toEqual([[], ['job'], false]);
    expect(leader.state.turns.has('job')).toBe(false);
  });

  it('hands over what this process stored without reading it, and reads what was changed since', async () => {
    leader = await new Leader().learn();
    const session = leader.session('w1');
    leader.add('kept', { row: storedRow('kept') });
    leader.add('changed', { row: storedRow('changed') });
    leader.edited.add('changed');
    const first = leader.poll(session, 2);
    const second = leader.poll(session, 2);
    await leader.claimer.runOnce();
    expect([...first, ...second].sort()).toEqual(['changed', 'kept']);
    expect(leader.known).toEqual([['changed', 'kept']]);
    expect(leader.batches).toEqual([['changed']]);
    expect(leader.payloads).toEqual(['of kept', null]);
  });

  it('leaves a job that came too late for its start to those who end it', async () => {
    leader = await new Leader().learn();
    leader.add('expired', { startBefore: leader.clock.now() });
    leader.add('retried', { startBefore: leader.clock.now(), fence: 2 });
    const got = leader.poll(leader.session('w'), 10);
    await leader.claimer.runOnce();
    expect(got).toEqual(['retried']);
    expect(leader.onExpired).toHaveBeenCalledTimes(1);
  });

  it('loses nothing when the server refuses the statement', async () => {
    leader = await new Leader().learn();
    leader.add('job');
    const got = leader.poll(leader.session('w'), 10);
    leader.failWith = refusal();
    await expect(leader.claimer.runOnce()).rejects.toThrow('deadlock');
    expect(leader.state.turns.has('job')).toBe(false);
    leader.failWith = undefined;
    await leader.claimer.runOnce();
    expect(got).toEqual(['job']);
  });

  it('ends the term and hands nothing over when the outcome of the claim is unknown', async () => {
    leader = await new Leader().learn();
    leader.add('job');
    const got = leader.poll(leader.session('w'), 10);
    leader.failWith = new Error('Connection terminated unexpectedly');
    await expect(leader.claimer.runOnce()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(leader.state.term.over).toBe(true);
    expect(got).toEqual([]);
    leader.failWith = undefined;
    await leader.claimer.runOnce();
    expect(leader.batches).toEqual([]);
  });
});

describe('a poll whose key is being read again', () => {
  /** A worker that asks for two of three jobs while its key is being read again; `found` says how that ended. */
  async function reading() {
    const leader = await new Leader().learn();
    const session = leader.session('w');
    let found: (isValid: boolean) => void = () => undefined;
    const isValid = new Promise<boolean>((resolve) => {
      found = resolve;
    });
    const got = leader.poll(session, 2, () => isValid);
    for (const id of ['a', 'b', 'c']) leader.add(id);
    await leader.claimer.runOnce();
    // It is given nothing else meanwhile.
    await leader.claimer.runOnce();
    expect(got).toEqual([]);
    expect(leader.batches).toEqual([['a', 'b']]);
    return { leader, session, got, found };
  }

  it('gets its jobs as soon as the key is known to be valid', async () => {
    const { leader, got, found } = await reading();
    found(true);
    await vi.waitFor(() => expect(got).toEqual(['a', 'b']));
    expect(leader.orphans).toEqual([]);
  });

  it('gets nothing if the key has ended, and its jobs are given back', async () => {
    const { leader, session, got, found } = await reading();
    found(false);
    await vi.waitFor(() => expect(leader.orphans).toEqual(['a', 'b']));
    expect(got).toEqual([]);
    expect(session.polls.size).toBe(0);
  });

  it('gets nothing if it has ended meanwhile, and only what was cancelled by then is not given back', async () => {
    const { leader, session, found } = await reading();
    leader.state.running.get(idOf('a'))!.cancelledAt = 1;
    for (const poll of session.polls) poll.settle({ epoch: 1, jobs: [] });
    found(true);
    await vi.waitFor(() => expect(leader.orphans).toEqual(['b']));
  });
});
