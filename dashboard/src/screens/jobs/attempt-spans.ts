import type { Attempt, Job } from '../../../../src/core/job.js';
import type { Span, SpanKind } from '../../parts/span-bar.js';

/** What a job did from its submission to its end, as spans of time: pure, for the chart of its attempts. */

/** One line of the chart: an attempt with what came before it, or what goes on after the last one. */
export interface AttemptLine {
  /** Null for what the job does until its next attempt. */
  readonly attempt: Attempt | null;
  readonly spans: readonly Span[];
}

const at = (moment: string) => Date.parse(moment);

/** The lines of a job, oldest first; what has not ended goes on until now. */
export function attemptLines(job: Job, now: number): AttemptLine[] {
  const { attempts } = job;
  const lines: AttemptLine[] = [];
  let since = at(job.createdAt);
  for (const [i, attempt] of attempts.entries()) {
    const claimed = at(attempt.claimedAt);
    const dueAt = i === 0 ? firstDue(job, attempt) : i === attempts.length - 1 ? at(job.runAt) : claimed;
    // Of lists that were cut, the beginning is not known.
    const isFirst = attempt.attempt === 1;
    const before = i === 0 && !isFirst ? [] : waitingSpans(since, dueAt, claimed, pauseKind(attempts[i - 1]));
    lines.push({ attempt, spans: [...before, ...runningSpans(attempt, claimed, now)] });
    since = attempt.finishedAt === null ? now : at(attempt.finishedAt);
  }
  const last = attempts.at(-1);
  if ((job.state === 'pending' || job.state === 'blocked') && (!last || last.finishedAt !== null)) {
    lines.push({ attempt: null, spans: waitingSpans(since, at(job.runAt), now, pauseKind(last)) });
  } else if (attempts.length === 0 && job.finishedAt !== null) {
    lines.push({ attempt: null, spans: waitingSpans(since, at(job.runAt), at(job.finishedAt), 'scheduled') });
  }
  return lines;
}

/** When the first attempt was due; later ones move the job's due time. */
function firstDue(job: Job, { claimedAt, startedAt }: Attempt): number {
  return job.lateBy === null ? at(claimedAt) : at(startedAt ?? claimedAt) - job.lateBy;
}

function pauseKind(before: Attempt | undefined): SpanKind {
  if (!before) return 'scheduled';
  return before.outcome === 'failed' || before.outcome === 'timed-out' ? 'backoff' : 'waiting';
}

/** The time until something is due, and the time that it waits after that. */
function waitingSpans(from: number, dueAt: number, to: number, kind: SpanKind): Span[] {
  const due = Math.min(Math.max(from, dueAt), to);
  const spans: Span[] = [
    { kind, from, to: due },
    { kind: 'waiting', from: due, to },
  ];
  return spans.filter((span) => span.to > span.from);
}

function runningSpans({ startedAt, finishedAt, outcome }: Attempt, claimed: number, now: number): Span[] {
  const ended = finishedAt === null ? Math.max(now, claimed) : at(finishedAt);
  // When it really started is told with its end; of a lost attempt, never.
  const started = startedAt === null ? claimed : Math.min(Math.max(claimed, at(startedAt)), ended);
  const spans: Span[] = [
    { kind: 'claimed', from: claimed, to: started },
    { kind: 'running', from: started, to: ended, outcome },
  ];
  // An attempt of no time at all is still to be seen.
  const shown = spans.filter((span) => span.to > span.from);
  return shown.length > 0 ? shown : [{ kind: 'running', from: claimed, to: ended, outcome }];
}
