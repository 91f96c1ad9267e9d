import './jobs.css';
import './job.css';
import { useState } from 'preact/hooks';
import type { Job } from '../../../../src/core/job.js';
import { type Resource, useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { Copied, CopyText } from '../../parts/copied.js';
import { countText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { JsonView } from '../../parts/json-view.js';
import { ResourceProblem } from '../../parts/problem-note.js';
import { StateBadge } from '../../parts/state-badge.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { Attempts } from './attempts.js';
import { ChangeDialog } from './change-dialog.js';
import { ErrorText } from './error-text.js';
import { JobArtifact } from './job-artifact.js';
import { JobFacts } from './job-facts.js';
import { JobLogs } from './job-logs.js';
import { JobOutputs } from './job-outputs.js';
import { artifactOf, standing, workText } from './job-words.js';
import { jsonText } from './json-text.js';
import { Relatives } from './relatives.js';
import { actionsFor, isChangeable } from './steering.js';
import { WhyLine } from './why-line.js';

/** One job, with everything that is known about it. */
export default function JobScreen({ params }: ScreenProps) {
  const id = params.id!.toLowerCase();
  const resource = useResource<Job>(`/v1/jobs/${encodeURIComponent(id)}`, {
    ...{ events: ['job.*', 'batch.*', 'workflow.*'], about: id, atMostEveryMs: 700, isExact: true },
  });
  const job = resource.data.value;
  const { value: problem } = resource.problem;
  if (problem?.code === 'JOB_NOT_FOUND') return <NoJob id={id} wasThere={job !== undefined} />;
  return (
    <>
      <ResourceProblem resource={resource} />
      {job ? <WholeJob job={job} resource={resource} /> : problem === null && <div class="placeholder" />}
    </>
  );
}

function WholeJob({ job, resource }: { readonly job: Job; readonly resource: Resource<Job> }) {
  const hasResult = job.state === 'succeeded' || job.result !== null;
  return (
    <>
      <Header job={job} onDone={() => void resource.refresh()} />
      <WhyLine job={job} />
      <ProgressLine job={job} />
      <div class="job-parts">
        <div class="job-main">
          {job.error && (
            <section class="card" aria-labelledby="error-title">
              <header class="card-top">
                <h2 id="error-title">Error</h2>
              </header>
              <ErrorText error={job.error} />
            </section>
          )}
          <Attempts job={job} />
          {job.target.type === 'exec' && <JobOutputs job={job} />}
          {hasResult && <JsonCard title="Result" value={job.result} />}
          <JsonCard title="Payload" value={job.payload} />
          <TargetCard job={job} />
          <JobLogs id={job.id} isLive={job.finishedAt === null && job.state === 'running'} key={job.fence} />
        </div>
        <div class="job-side">
          <JobFacts job={job} />
          <Relatives job={job} />
        </div>
      </div>
    </>
  );
}

function Header({ job, onDone }: { readonly job: Job; readonly onDone: () => void }) {
  const [isChanging, setChanging] = useState(false);
  const { text, tone } = standing(job);
  const mayChange = may('submit') && isChangeable(job);
  const artifact = artifactOf(job);
  return (
    <header class="screen-top job-top">
      <div class="job-name">
        <h1>
          {job.task === null && artifact !== null ? <JobArtifact id={artifact} /> : workText(job)}{' '}
          <StateBadge state={job.state} text={text} {...(tone && { tone })} />
        </h1>
        <Copied text={job.id} what="the id" />
      </div>
      <div class="screen-actions">
        {actionsFor(job, onDone).map((action) => (
          <ActionButton key={action.label} action={action} isMain={action.label === 'Retry'} />
        ))}
        {mayChange && (
          <button type="button" class="button" onClick={() => setChanging(true)}>
            Change …
          </button>
        )}
        {may('submit') && (
          <a class="button" href={addressOf(`/submit?from=${job.id}`)}>
            Edit and run again
          </a>
        )}
        <CopyAs method="GET" path={`/v1/jobs/${job.id}`} cli={`punctual job get ${job.id}`} />
      </div>
      {isChanging && <ChangeDialog job={job} onClose={() => setChanging(false)} onChanged={onDone} />}
    </header>
  );
}

function ProgressLine({ job: { state, progress } }: { readonly job: Job }) {
  if (state !== 'running' || progress === null) return null;
  const percent = Math.round(progress.progress * 100);
  return (
    <div class="card progress job-progress">
      <div class="progress-words">
        <span>{progress.message ?? 'Progress'}</span>
        <span class="figure">{percent} %</span>
      </div>
      <progress aria-label="Progress of the attempt" value={progress.progress} max={1} />
    </div>
  );
}

function JsonCard({ title, value }: { readonly title: string; readonly value: unknown }) {
  const id = `json-${title.toLowerCase()}`;
  const text = jsonText(value);
  return (
    <section class="card" aria-labelledby={id}>
      <header class="card-top">
        <h2 id={id}>
          {title} {text.length > 10_000 && <span class="soft">{countText(text.length)} characters</span>}
        </h2>
        <CopyText text={text} what={title.toLowerCase()} />
      </header>
      <JsonView value={value} label={`${title} as JSON`} />
    </section>
  );
}

/** What is called or started, if it is not the handler of a task. */
function TargetCard({ job: { target, task } }: { readonly job: Job }) {
  if (target.type === 'handler' && (task !== null || target.name === '')) return null;
  const { type, ...rest } = target;
  return <JsonCard title={type === 'http' ? 'Call' : type === 'exec' ? 'Program' : 'Target'} value={rest} />;
}

function NoJob({ id, wasThere }: { readonly id: string; readonly wasThere: boolean }) {
  return (
    <EmptyState
      title={wasThere ? 'The job is gone' : 'There is no such job'}
      command={`punctual job list --since 24h`}
    >
      <p>
        Nothing is known of <span class="mono">{id}</span>: it may be mistyped or another tenant's, or its
        history was removed. <a href={addressOf('/jobs')}>Show all jobs</a>
      </p>
    </EmptyState>
  );
}
