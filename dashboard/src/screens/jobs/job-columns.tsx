import type { ListedJob } from '../../../../src/core/job.js';
import { nodeTime } from '../../api/client.js';
import { durationText } from '../../parts/duration-text.js';
import { Moment, Since } from '../../parts/moment.js';
import { StateBadge } from '../../parts/state-badge.js';
import type { Column } from '../../parts/table.js';
import { lastedMs, standing, workText } from './job-words.js';

/** The columns of a list of jobs. */
export const JOB_COLUMNS: readonly Column<ListedJob>[] = [
  { title: 'Job', render: (job) => <span title={job.id}>{workText(job)}</span> },
  {
    ...{ title: 'State', width: '106px' },
    render: (job) => {
      const { text, tone } = standing(job);
      return <StateBadge state={job.state} text={text} {...(tone && { tone })} />;
    },
  },
  { title: 'Queue', width: '12%', hiddenBelow: 'narrow', render: (job) => job.queue },
  { title: 'Key', width: '14%', hiddenBelow: 'medium', render: (job) => job.key ?? <None /> },
  {
    ...{ title: 'Attempts', width: '82px', isNumber: true, hiddenBelow: 'narrow' },
    render: (job) => `${job.attempt}${job.failures > 0 ? ` / ${job.maxAttempts}` : ''}`,
  },
  { title: 'Created', width: '88px', isNumber: true, render: (job) => <Moment at={job.createdAt} /> },
  {
    title: 'Took',
    width: '92px',
    isNumber: true,
    hiddenBelow: 'narrow',
    render: (job) => <Took job={job} />,
  },
  { title: 'What', hiddenBelow: 'medium', render: (job) => <What job={job} /> },
];

function None() {
  return <span class="soft">–</span>;
}

function Took({ job }: { readonly job: ListedJob }) {
  const ms = lastedMs(job);
  if (ms !== null) return <>{durationText(ms)}</>;
  if (job.state === 'running' && job.startedAt !== null) return <Since at={job.startedAt} />;
  return <None />;
}

/** What there is to say about a job: its error, how far it is, or when it is due. */
function What({ job }: { readonly job: ListedJob }) {
  const { error, progress, state, runAt } = job;
  if (error && state !== 'succeeded')
    return (
      <span class="jobs-error" title={error.message}>
        {error.code === undefined ? '' : `${error.code}: `}
        {error.message}
      </span>
    );
  if (state === 'running' && progress)
    return (
      <span>
        {Math.round(progress.progress * 100)} % {progress.message}
      </span>
    );
  if (state === 'pending' && !job.hold && Date.parse(runAt) > nodeTime())
    return (
      <span class="soft">
        due <Moment at={runAt} />
      </span>
    );
  return <None />;
}
