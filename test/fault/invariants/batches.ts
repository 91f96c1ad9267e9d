import type { Invariant, Seen } from '../checker.js';
import { wasClockBack } from '../excuses.js';
import type { AuditEntry, BatchRecord, Effect, JobRecord } from '../history.js';

/** Members start together or not at all, and what one comes to, the batch comes to. */
export const invariant: Invariant = {
  name: 'batches',
  rule: 'Members are claimed all in one transaction, a start is taken back only if none has begun, and a batch ends once, as its members did.',
  *check(seen) {
    for (const batch of seen.batches) {
      const members = batch.members.flatMap((n) => seen.jobByNumber.get(n) ?? []);
      if (batch.row === null) {
        if (members.length > 0) yield { job: members[0]!.id, detail: 'its batch is missing' };
        continue;
      }
      if (members.length < batch.members.length) {
        const detail = `the batch has ${members.length} of its ${batch.members.length} members`;
        yield { job: batch.row.id, detail };
        continue;
      }
      const isReplayed = seen.replayed.has(batch.row.id) || members.some(({ id }) => seen.replayed.has(id));
      yield* together(seen, members, isReplayed);
      yield* ended(seen, batch, members);
      if (!isReplayed) yield* reasons(seen, batch, members);
    }
  },
};

type Wrong = { readonly detail: string; readonly job: string };

/** The claims of one start, by member. */
type Start = ReadonlyMap<string, AuditEntry>;

/** The starts of a batch, one after another: claims of one transaction each. */
function startsOf(seen: Seen, members: readonly JobRecord[]): Start[] {
  const starts = new Map<number, Map<string, AuditEntry>>();
  const claims = members.flatMap(({ id }) => seen.auditByJob.get(id) ?? []);
  for (const entry of claims.filter(({ kind }) => kind === 'claimed').sort((a, b) => a.seq - b.seq)) {
    const start = starts.get(entry.tx) ?? new Map<string, AuditEntry>();
    starts.set(entry.tx, start.set(entry.job!, entry));
  }
  return [...starts.values()];
}

function begunIn(seen: Seen, start: Start): Effect[] {
  return [...start].flatMap(([job, { fence }]) =>
    (seen.startsByJob.get(job) ?? []).filter((effect) => effect.fence === fence),
  );
}

function* together(seen: Seen, members: readonly JobRecord[], isReplayed: boolean): Generator<Wrong> {
  const starts = startsOf(seen, members);
  for (const [index, start] of starts.entries()) {
    const [job] = start.keys();
    if (start.size < members.length)
      yield { job: job!, detail: `${start.size} of ${members.length} members were claimed together` };
    if (isReplayed || index === starts.length - 1) continue;
    const begun = begunIn(seen, start);
    if (begun.length > 0)
      yield {
        job: begun[0]!.job,
        detail: `its batch started again although ${begun.length} members had begun`,
      };
  }
  if (isReplayed) return;
  for (const { id } of members) {
    for (const { fence } of seen.startsByJob.get(id) ?? []) {
      if (!starts.some((start) => start.get(id)?.fence === fence))
        yield { job: id, detail: `started under fence ${fence}, which was never claimed` };
    }
  }
}

function* ended(seen: Seen, batch: BatchRecord, members: readonly JobRecord[]): Generator<Wrong> {
  const { id, state } = batch.row!;
  const ends = (seen.auditByJob.get(id) ?? []).filter(({ kind }) => kind === 'over').length;
  if (state === 'pending' || state === 'running') yield { job: id, detail: 'the batch never ended' };
  else if (ends !== 1) yield { job: id, detail: `the batch ended ${ends} times` };
  const areAllDone = members.every((member) => member.state === 'succeeded');
  if (areAllDone !== (state === 'succeeded'))
    yield { job: id, detail: `the batch is ${state}, its members ${members.map((each) => each.state)}` };
  if (state === 'cancelled' && !mayBeCancelled(batch))
    yield { job: id, detail: 'the batch was cancelled by nobody' };
}

/** A batch that did not succeed, and a member that was cancelled, have a reason. */
function* reasons(seen: Seen, batch: BatchRecord, members: readonly JobRecord[]): Generator<Wrong> {
  const { id, state, error } = batch.row!;
  const starts = startsOf(seen, members);
  const isServable = batch.members.every((n) => seen.orderByNumber.get(n)!.servable);
  if (!isServable && (starts.length > 0 || (state !== 'failed' && !mayBeCancelled(batch))))
    yield { job: id, detail: `the batch is ${state}, and nobody could run all of its members` };
  if (error !== null) {
    if (batch.startTimeoutMs === null) yield { job: id, detail: `the batch failed with ${error}` };
    if (starts.some((start) => begunIn(seen, start).length > 0))
      yield { job: id, detail: `the batch failed with ${error} although members had begun` };
    return;
  }
  const isStopped = mayBeCancelled(batch) || batch.onFailure === 'cancel-rest';
  for (const member of members) {
    if (member.state === 'cancelled' && !isStopped)
      yield { job: member.id, detail: 'was cancelled although its batch goes on' };
    if (member.state === 'failed' && !hasReason(seen, member))
      yield { job: member.id, detail: `${member.attempts.at(-1)?.outcome}, and nothing had happened to it` };
  }
}

/** It was to fail, or something had happened to its worker. */
function hasReason(seen: Seen, { id, n, attempts }: JobRecord): boolean {
  const last = attempts.at(-1);
  if (!last || last.outcome === 'failed') return (seen.orderByNumber.get(n)?.failures ?? 0) > 0;
  const entries = seen.auditByJob.get(id) ?? [];
  const claim = entries.find(({ kind, fence }) => kind === 'claimed' && fence === last.fence);
  const end = entries.find(({ kind }) => kind === 'ended');
  if (!claim || !end) return false;
  // A new leader can tell how long ago an attempt was claimed by the clock alone.
  if (wasClockBack(seen, { from: claim.at, to: end.at })) return true;
  const start = seen.startsByJob.get(id)?.find(({ fence }) => fence === last.fence);
  // One that never began is not known to have had a worker.
  const isHit = (target: string) => (start ? target === start.worker : /^w\d/.test(target));
  const doomedMs = seen.settings.workerTimeoutMs * 2;
  return seen.faults.some(({ targets, held, from, to }) => {
    // A member that a worker with a held thread never began is taken back. The others have begun, so it is lost.
    const isTakenBack = held !== undefined && !start;
    return (targets.some(isHit) || isTakenBack) && from <= end.at && to >= claim.at - doomedMs;
  });
}

function mayBeCancelled({ cancel }: BatchRecord): boolean {
  return cancel !== null && cancel.outcome !== 'refused';
}
