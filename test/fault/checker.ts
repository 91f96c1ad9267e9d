import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mayBeLost, restoresOf } from './excuses.js';
import type { AuditEntry, Effect, History, JobRecord, Order, Submission } from './history.js';

/** Something that must not be. */
export interface Violation {
  readonly invariant: string;
  readonly detail: string;
  /** The job it is about, if it is about one. */
  readonly job: string | null;
}

/** A rule over what was seen. A file in `invariants/` that exports one as `invariant` is checked by itself. */
export interface Invariant {
  readonly name: string;
  /** One sentence for whoever reads a violation. */
  readonly rule: string;
  check(seen: Seen): Iterable<{ readonly detail: string; readonly job?: string }>;
}

/** A history with the ways in that invariants need. */
export interface Seen extends History {
  readonly jobById: ReadonlyMap<string, JobRecord>;
  /** The starts of a job, in the order of their fences and then of time. */
  readonly startsByJob: ReadonlyMap<string, readonly Effect[]>;
  readonly endsByJob: ReadonlyMap<string, readonly Effect[]>;
  readonly auditByJob: ReadonlyMap<string, readonly AuditEntry[]>;
  readonly orderByNumber: ReadonlyMap<number, Order>;
  readonly jobByNumber: ReadonlyMap<number, JobRecord>;
  /** When the last of the steps before it had ended, for the jobs of steps that have some. */
  readonly readyByJob: ReadonlyMap<string, number>;
  /** Submissions that a restored copy of the database may know nothing of. */
  readonly mayBeLost: ReadonlySet<Submission>;
  /** Jobs to which something happened that a restored copy knows nothing of, so that it happens again. */
  readonly replayed: ReadonlySet<string>;
}

/** Loads every invariant there is. */
export async function loadInvariants(): Promise<Invariant[]> {
  const folder = join(import.meta.dirname, 'invariants');
  const files = readdirSync(folder).filter((name) => /^[a-z-]+\.[jt]s$/.test(name));
  const modules = await Promise.all(
    files
      .sort()
      .map((name) => import(pathToFileURL(join(folder, name)).href) as Promise<{ invariant: Invariant }>),
  );
  return modules.map((module) => module.invariant);
}

/** Checks a history against the invariants. */
export function check(history: History, invariants: readonly Invariant[]): Violation[] {
  const seen = look(history);
  return invariants.flatMap(({ name, check: run }) =>
    Array.from(run(seen), ({ detail, job = null }) => ({ invariant: name, detail, job })),
  );
}

/** Everything that any observer saw of one job, in order of time, for people. */
export function storyOf(history: History, jobId: string): string[] {
  const job = history.jobs.find((each) => each.id === jobId);
  const lines: [at: number, line: string][] = [];
  for (const { orders, ids, outcome, sentAt } of history.submissions) {
    const order = orders.find((each, index) => ids[index] === jobId || each.n === job?.n);
    if (order) lines.push([sentAt, `submitted (${outcome}) ${JSON.stringify(order)}`]);
  }
  for (const { job: id, at, kind, fence, worker, result } of history.effects) {
    if (id === jobId) lines.push([at, `${kind} of fence ${fence} on ${worker} ${result ?? ''}`]);
  }
  for (const { job: id, at, seq, kind, fence, epoch, writer } of history.audit) {
    if (id === jobId) lines.push([at, `${kind} fence ${fence} epoch ${epoch} by ${writer} (write ${seq})`]);
  }
  for (const { job: id, at, fence, outcome, verdict } of history.answers) {
    if (id === jobId) lines.push([at, `report of ${outcome} under fence ${fence} was ${verdict}`]);
  }
  const [first, last] = [Math.min(...lines.map(([at]) => at)), Math.max(...lines.map(([at]) => at))];
  for (const { kind, from, to, detail } of history.faults) {
    if (to > first && from < last) lines.push([from, `fault ${kind} until ${to.toFixed(0)}: ${detail}`]);
  }
  lines.sort(([a], [b]) => a - b);
  return [
    ...lines.map(([at, line]) => `${at.toFixed(1)} ${line}`),
    `in the tables: ${job ? JSON.stringify(job) : 'not there'}`,
  ];
}

function look(history: History): Seen {
  const jobByNumber = new Map(history.jobs.map((job) => [job.n, job]));
  const auditByJob = byJob(history.audit.filter((entry) => entry.job !== null));
  const starts = history.effects.filter((effect) => effect.kind === 'start');
  starts.sort((a, b) => a.fence - b.fence || a.at - b.at);
  const restores = restoresOf(history);
  const lost = history.submissions.filter((submission) => mayBeLost(restores, submission));
  return {
    ...history,
    jobById: new Map(history.jobs.map((job) => [job.id, job])),
    startsByJob: byJob(starts),
    endsByJob: byJob(history.effects.filter((effect) => effect.kind === 'end')),
    auditByJob,
    jobByNumber,
    readyByJob: readyTimes(history, jobByNumber, auditByJob),
    orderByNumber: new Map(
      history.submissions.flatMap(({ orders }) => orders.map((order) => [order.n, order])),
    ),
    mayBeLost: new Set(lost),
    replayed: new Set([
      ...lost.flatMap(({ ids }) => ids),
      ...restores.flatMap(({ lost: entries }) => entries.flatMap(({ job }) => job ?? [])),
    ]),
  };
}

function readyTimes(
  { workflows }: History,
  jobByNumber: Seen['jobByNumber'],
  auditByJob: Seen['auditByJob'],
): Map<string, number> {
  const times = new Map<string, number>();
  for (const { steps } of workflows) {
    const ends = new Map<string, number>();
    for (const { name, n, after } of steps) {
      const job = jobByNumber.get(n)?.id;
      if (job === undefined) continue;
      const ended = auditByJob.get(job)?.findLast(({ kind }) => kind === 'ended');
      if (ended) ends.set(name, ended.at);
      if (after.length > 0) times.set(job, Math.max(...after.map((parent) => ends.get(parent) ?? 0)));
    }
  }
  return times;
}

function byJob<T extends { readonly job: string | null }>(things: readonly T[]): Map<string, T[]> {
  const grouped = new Map<string, T[]>();
  for (const thing of things) {
    const group = grouped.get(thing.job!);
    if (group) group.push(thing);
    else grouped.set(thing.job!, [thing]);
  }
  return grouped;
}
