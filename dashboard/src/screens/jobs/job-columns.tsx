import type { ListedJob } from '../../../../src/core/job.js';
import { durationText } from '../../parts/duration-text.js';
import { Moment, Since } from '../../parts/moment.js';
import { StateBadge } from '../../parts/state-badge.js';
import type { Column } from '../../parts/table.js';
import { lastedMs, shortId, standing, workText } from './job-words.js';

/** The columns of a list of jobs. */
export const JOB_COLUMNS: readonly Column<ListedJob>[] = [
  { title: 'Job', render: (job) => workText(job) },
  {
    ...{ title: 'State', width: '112px' },
    render: (job) => {
      const { text, tone } = standing(job);
      return <StateBadge state={job.state} text={text} {...(tone && { tone })} />;
    },
  },
  { title: 'Queue', width: '13%', hiddenBelow: 'narrow', render: (job) => job.queue },
  { title: 'Key', width: '15%', hiddenBelow: 'medium', render: (job) => job.key ?? <None /> },
  {
    ...{ title: 'Id', width: '122px', hiddenBelow: 'medium' },
    render: (job) => <span class="mono soft">{shortId(job.id)}</span>,
  },
  {
    ...{ title: 'Attempts', width: '84px', isNumber: true, hiddenBelow: 'narrow' },
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
  { title: 'What', width: '24%', hiddenBelow: 'medium', render: (job) => <What job={job} /> },
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
  if (state === 'pending' && !job.hold && Date.parse(runAt) > Date.parse(job.createdAt))
    return (
      <span class="soft">
        due <Moment at={runAt} />
      </span>
    );
  return <None />;
}
