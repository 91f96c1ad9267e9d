import type { Violation } from './checker.js';
import type { Effect, History } from './history.js';
import { firstStartAfter } from './takeover.js';

/** What a run comes to, as numbers. The names of the first ones are those of the public contract. */
export interface Summary {
  readonly scenario: string;
  readonly seconds: number;
  readonly seed: number;
  readonly jobs: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly elections: number;
  readonly lost: number;
  readonly doubled: number;
  readonly staleRefused: number;
  readonly violations: readonly Violation[];
  readonly worstLatenessMs: number;
  /** Milliseconds from the end of a leader to the first start under the next one, by kind of fault. */
  readonly gapMs: Readonly<Record<string, Gap>>;
  readonly submissions: Readonly<Record<string, number>>;
  /** Workflows and batches by their states. */
  readonly workflows: Readonly<Record<string, number>>;
  readonly batches: Readonly<Record<string, number>>;
  /** Jobs ordered a second while the load ran, the time included in which it was held back by a backlog. */
  readonly jobsPerSecond: number;
  readonly heldBackSeconds: number;
  /** The most memory that any node used, in megabytes. */
  readonly nodeMemoryMb: number;
}

export interface Gap {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const LOST = new Set(['nothing-lost', 'whole-or-absent']);
const DOUBLED = new Set(['at-most-once', 'retries-have-a-reason', 'one-owner']);

/** Counts what was seen. */
export function summarize(history: History, violations: readonly Violation[], seconds: number): Summary {
  const starts = history.effects.filter((effect) => effect.kind === 'start');
  const stale = history.answers.filter((answer) => answer.verdict === 'stale').length;
  return {
    ...{ scenario: history.scenario, seconds, seed: history.seed },
    jobs: history.jobs.length,
    faults: countBy(history.faults.filter((fault) => fault.effective).map((fault) => fault.kind)),
    attempts: starts.length,
    elections: history.audit.filter((entry) => entry.kind === 'term').length,
    lost: violations.filter(({ invariant }) => LOST.has(invariant)).length,
    doubled: violations.filter(({ invariant }) => DOUBLED.has(invariant)).length,
    staleRefused: stale + history.probes.filter((probe) => probe.status === 409).length,
    violations,
    worstLatenessMs: worstLateness(history, starts),
    gapMs: gaps(history),
    submissions: countBy(history.submissions.map((submission) => submission.outcome)),
    workflows: countBy(history.workflows.map(({ row }) => row?.state ?? 'not stored')),
    batches: countBy(history.batches.map(({ row }) => row?.error ?? row?.state ?? 'not stored')),
    jobsPerSecond: Math.round(history.jobs.length / history.load.seconds),
    heldBackSeconds: Math.round(history.load.heldBackSeconds),
    nodeMemoryMb: Math.max(0, ...history.memory.map(({ megabytes }) => megabytes)),
  };
}

/** The numbers for people. */
export function describe(summary: Summary): string {
  const { gapMs, faults, submissions } = summary;
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ') || 'none';
  const gaps = Object.entries(gapMs).map(
    ([kind, { count, p50, p99, max }]) =>
      `gap            ${kind}: p50 ${p50} ms, p99 ${p99} ms, worst ${max} ms over ${count}`,
  );
  return [
    `scenario       ${summary.scenario}, ${summary.seconds} s, seed ${summary.seed}`,
    `jobs           ${summary.jobs} (submissions: ${list(submissions)})`,
    `load           ${summary.jobsPerSecond} jobs a second, held back by a backlog for ${summary.heldBackSeconds} s`,
    `workflows      ${list(summary.workflows)}`,
    `batches        ${list(summary.batches)}`,
    `faults         ${list(faults)}`,
    `attempts       ${summary.attempts}`,
    `elections      ${summary.elections}`,
    `lost           ${summary.lost}`,
    `doubled        ${summary.doubled}`,
    `stale refused  ${summary.staleRefused}`,
    `worst lateness ${summary.worstLatenessMs} ms, faults included`,
    ...gaps,
    `memory         ${summary.nodeMemoryMb} MB at most in a node`,
    `violations     ${summary.violations.length}`,
  ].join('\n');
}

/** Of first attempts only: a later one is due when the backoff says so. */
function worstLateness(history: History, starts: readonly Effect[]): number {
  const sent = new Map<number, number>();
  for (const { orders, sentAt } of history.submissions) {
    for (const { n, delayMs } of orders)
      sent.set(n, Math.min(sent.get(n) ?? Number.POSITIVE_INFINITY, sentAt + delayMs));
  }
  // A clock that was set back makes jobs due before they were ordered.
  const due = new Map(
    history.jobs
      .filter((job) => job.attempts.length <= 1)
      .map((job) => [job.id, Math.max(job.runAt, sent.get(job.n) ?? 0)]),
  );
  let worst = 0;
  for (const { job, at } of starts) worst = Math.max(worst, at - (due.get(job) ?? at));
  return Math.round(worst);
}

/** For each leader that was taken away: how long until something started that a later one had claimed. */
function gaps(history: History): Record<string, Gap> {
  const find = firstStartAfter(history);
  const byKind = new Map<string, number[]>();
  for (const { kind, leaderGone, effective } of history.faults) {
    if (!leaderGone || !effective) continue;
    const next = find(leaderGone);
    if (next) byKind.set(kind, [...(byKind.get(kind) ?? []), next.at - leaderGone.at]);
  }
  return Object.fromEntries([...byKind].map(([kind, values]) => [kind, percentiles(values)]));
}

function percentiles(values: readonly number[]): Gap {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0);
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
