import { useState } from 'preact/hooks';
import type { Attempt, Job } from '../../../../src/core/job.js';
import { durationText, plural } from '../../parts/duration-text.js';
import { JsonView } from '../../parts/json-view.js';
import { Moment } from '../../parts/moment.js';
import { eachSecond } from '../../parts/now.js';
import { SpanBar, type SpanKind, SpanLegend } from '../../parts/span-bar.js';
import { StateBadge } from '../../parts/state-badge.js';
import { addressOf } from '../../routing/root.js';
import { type AttemptLine, attemptLines } from './attempt-spans.js';
import { ErrorText } from './error-text.js';
import { ExecutionView, executionText } from './execution-view.js';
import { othersOf } from './other-fields.js';
import { type TimeScale, timeScale } from './time-scale.js';

/** A job may have a thousand attempts; the newest are shown. */
const MOST_LINES = 25;
const KINDS: readonly SpanKind[] = ['scheduled', 'waiting', 'claimed', 'running', 'backoff'];

/** The attempts of a job with their workers and outcomes, and a chart of where its time went. */
export function Attempts({ job }: { readonly job: Job }) {
  const [isWhole, setWhole] = useState(false);
  const isOver = job.finishedAt !== null;
  const now = isOver ? Date.parse(job.finishedAt!) : Math.max(eachSecond.value, Date.parse(job.createdAt));
  const all = attemptLines(job, now);
  const lines = isWhole ? all : all.slice(-MOST_LINES);
  const scale = timeScale(lines.flatMap(({ spans }) => spans.flatMap(({ from, to }) => [from, to])));
  return (
    <section class="card" aria-labelledby="attempts-title">
      <header class="card-top">
        <h2 id="attempts-title">
          Attempts <span class="soft figure">{job.attempt}</span>
        </h2>
        <SpanLegend kinds={KINDS} />
      </header>
      {all.length > lines.length && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show {plural(all.length - lines.length, 'earlier attempt')}
        </button>
      )}
      {lines.length > 0 && <Lines lines={lines} scale={scale} now={now} />}
    </section>
  );
}

interface LinesProps {
  readonly lines: readonly AttemptLine[];
  readonly scale: TimeScale;
  readonly now: number;
}

function Lines({ lines, scale, now }: LinesProps) {
  return (
    <div class="job-attempts">
      <table>
        <thead>
          <tr>
            <th scope="col" class="cell-number">
              #
            </th>
            <th scope="col">Outcome</th>
            <th scope="col" class="job-attempts-chart">
              Where the time went
            </th>
            <th scope="col" class="cell-number">
              Ran
            </th>
            <th scope="col" class="cell-number">
              Began
            </th>
            <th scope="col">Worker</th>
            <th scope="col" class="cell-number job-attempts-terms">
              Fence
            </th>
            <th scope="col" class="cell-number job-attempts-terms">
              Epoch
            </th>
          </tr>
        </thead>
        {lines.map((line) => (
          <Line key={line.attempt?.fence ?? 'next'} line={line} scale={scale} now={now} />
        ))}
      </table>
    </div>
  );
}

const KNOWN: readonly (keyof Attempt)[] = [
  ...(['attempt', 'fence', 'epoch', 'worker', 'claimedAt', 'startedAt', 'finishedAt'] as const),
  ...(['outcome', 'error', 'execution'] as const),
];

function Line({
  line: { attempt, spans },
  scale,
  now,
}: { readonly line: AttemptLine } & Omit<LinesProps, 'lines'>) {
  const [isOpen, setOpen] = useState(false);
  const others = attempt && othersOf(attempt, KNOWN);
  const execution = attempt?.execution;
  const hasMore = attempt !== null && (attempt.error !== null || others !== null || execution !== undefined);
  const ran = attempt === null ? null : runMs(attempt, now);
  return (
    <tbody>
      <tr>
        <td class="cell-number figure">{attempt?.attempt ?? '–'}</td>
        <td>
          {attempt === null ? (
            <span class="soft">next</span>
          ) : (
            <StateBadge state={attempt.outcome ?? 'running'} />
          )}
          {execution && <span class="soft job-attempts-execution">{executionText(execution)}</span>}
          {hasMore && (
            <button
              type="button"
              class="link job-attempts-more"
              aria-expanded={isOpen}
              aria-label={`${isOpen ? 'less' : 'more'} about attempt ${attempt.attempt}`}
              onClick={() => setOpen(!isOpen)}
            >
              {isOpen ? 'less' : 'more'}
            </button>
          )}
        </td>
        <td class="job-attempts-chart">
          <SpanBar spans={spans} scale={scale} />
        </td>
        <td class="cell-number figure">{ran === null ? '–' : durationText(ran)}</td>
        <td class="cell-number">
          {attempt === null ? '–' : <Moment at={attempt.startedAt ?? attempt.claimedAt} />}
        </td>
        <td>
          {attempt !== null && (
            <a class="mono" href={addressOf(`/workers/${attempt.worker}`)} title={attempt.worker}>
              {attempt.worker.slice(0, 13)}
            </a>
          )}
        </td>
        <td class="cell-number figure job-attempts-terms">{attempt?.fence ?? '–'}</td>
        <td class="cell-number figure job-attempts-terms">{attempt?.epoch ?? '–'}</td>
      </tr>
      {isOpen && attempt !== null && (
        <tr>
          <td colSpan={8} class="job-attempts-error">
            {attempt.error && <ErrorText error={attempt.error} />}
            {execution && <ExecutionView execution={execution} attempt={attempt.attempt} />}
            {others !== null && <JsonView value={others} label={`More about attempt ${attempt.attempt}`} />}
          </td>
        </tr>
      )}
    </tbody>
  );
}

function runMs({ startedAt, claimedAt, finishedAt }: Attempt, now: number): number {
  const end = finishedAt === null ? now : Date.parse(finishedAt);
  return Math.max(0, end - Date.parse(startedAt ?? claimedAt));
}
