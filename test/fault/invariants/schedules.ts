import type { Invariant, Seen } from '../checker.js';
import type { LedgerRecord, ScheduleRecord } from '../history.js';

/** An occurrence may be passed over only when nobody came to it for this long. */
const LATE_AFTER_MS = 30_000;

type Wrong = { readonly detail: string; readonly job?: string };

/** Every due moment, counted out one by one, has one run or one line that says why not. */
export const invariant: Invariant = {
  name: 'schedules',
  rule: 'Each occurrence of a schedule has exactly one job, or one recorded skip that its policy explains.',
  *check(seen) {
    for (const schedule of seen.schedules) {
      yield* doubles(schedule);
      yield* slots(schedule);
      yield* ends(schedule);
      if (schedule.overlap === 'queue') yield* order(schedule, seen);
    }
  },
};

function* doubles({ name, jobs, ledger }: ScheduleRecord): Generator<Wrong> {
  const seen = new Set<number>();
  for (const { id, occurrence, state } of jobs) {
    // A job made ahead and taken back when the schedule was paused never ran.
    if (state === 'cancelled') continue;
    if (seen.has(occurrence)) yield { job: id, detail: `${name} has more than one job for ${occurrence}` };
    seen.add(occurrence);
  }
  const recorded = new Map(ledger.filter(({ job }) => job !== null).map((row) => [row.at, row.job]));
  for (const { id, occurrence, state } of jobs) {
    if (state !== 'cancelled' && recorded.get(occurrence) !== id)
      yield { job: id, detail: `${name} has a job for ${occurrence} that is not on record` };
  }
}

/** Counts out every moment that was due while the schedule lived. */
function* slots(schedule: ScheduleRecord): Generator<Wrong> {
  const { name, createdAt, everyMs, until, ledger } = schedule;
  for (let at = createdAt + everyMs; at <= until; at += everyMs) {
    const rows = ledger.filter((row) => row.at <= at && at <= (row.until ?? row.at));
    if (rows.length === 0) yield { detail: `${name} has nothing on record for ${at}` };
    if (rows.length > 1) yield { detail: `${name} has ${rows.length} rows for ${at}` };
    for (const row of rows) {
      const problem = unexplained(schedule, row);
      if (problem !== null) yield { detail: `${name} at ${at}: ${problem}` };
    }
  }
  for (const { at } of ledger) {
    if ((at - createdAt) % everyMs !== 0) yield { detail: `${name} was never due at ${at}` };
  }
}

function unexplained({ overlap }: ScheduleRecord, row: LedgerRecord): string | null {
  if (row.job !== null) return null;
  if (row.state === 'skipped' && row.reason === 'overlap' && overlap === 'skip') return null;
  if (row.state === 'skipped' && row.reason === 'paused') return null;
  if (row.state === 'missed' && row.recordedAt - (row.until ?? row.at) >= LATE_AFTER_MS) return null;
  return `${row.state} (${row.reason}) without a reason`;
}

function* ends({ name, jobs }: ScheduleRecord): Generator<Wrong> {
  for (const { id, occurrence, state } of jobs) {
    if (state !== 'succeeded' && state !== 'cancelled')
      yield { job: id, detail: `${name}: the job for ${occurrence} is ${state}` };
  }
}

/** Jobs are made one after another. The audit tells in which order they were claimed; ids follow a clock that may be set back. */
function* order({ name, jobs }: ScheduleRecord, { auditByJob }: Seen): Generator<Wrong> {
  const claimed = jobs.flatMap(({ id, occurrence }) => {
    const first = auditByJob.get(id)?.find(({ kind }) => kind === 'claimed');
    return first ? [{ id, occurrence, seq: first.seq }] : [];
  });
  claimed.sort((a, b) => a.seq - b.seq);
  for (const [index, { id, occurrence }] of claimed.entries()) {
    const before = claimed[index - 1];
    if (before && before.occurrence > occurrence)
      yield { job: id, detail: `${name}: ${occurrence} started after ${before.occurrence}` };
  }
}
