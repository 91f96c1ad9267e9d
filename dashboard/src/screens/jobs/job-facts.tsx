import type { ComponentChildren } from 'preact';
import type { Job } from '../../../../src/core/job.js';
import { durationText } from '../../parts/duration-text.js';
import { Facts } from '../../parts/facts.js';
import { JsonView } from '../../parts/json-view.js';
import { Moment } from '../../parts/moment.js';
import { addressOf } from '../../routing/root.js';
import { JobArtifact } from './job-artifact.js';
import { addressWith, type JobFilter } from './job-filter.js';
import { artifactOf, shortId } from './job-words.js';
import { othersOf } from './other-fields.js';

/** Fields that stand somewhere on the page of a job. */
const KNOWN: readonly (keyof Job)[] = [
  ...([
    'id',
    'tenant',
    'task',
    'target',
    'queue',
    'state',
    'priority',
    'payload',
    'result',
    'error',
  ] as const),
  ...([
    'key',
    'hold',
    'runAt',
    'startBefore',
    'createdAt',
    'createdBy',
    'scheduledAt',
    'scheduledBy',
  ] as const),
  ...(['schedule', 'workflow', 'batch', 'attempt', 'failures', 'maxAttempts', 'retry', 'timeout'] as const),
  ...([
    'delivery',
    'concurrencyKey',
    'requires',
    'fence',
    'worker',
    'startedAt',
    'cancelRequestedAt',
  ] as const),
  ...(['finishedAt', 'lateBy', 'progress', 'dependsOn', 'dependents', 'ancestors', 'descendants'] as const),
  ...(['relativesCut', 'attempts', 'omitted'] as const),
];

/** Everything about a job that is one line. */
export function JobFacts({ job }: { readonly job: Job }) {
  const others = othersOf(job, KNOWN);
  const artifact = artifactOf(job);
  return (
    <section class="card" aria-labelledby="facts-title">
      <header class="card-top">
        <h2 id="facts-title">About it</h2>
      </header>
      <Facts
        facts={[
          ['Queue', <To key="q" path={`/queues/${encodeURIComponent(job.queue)}`} text={job.queue} />],
          [
            'Program',
            artifact && (
              <span key="program" class="mono wrapped">
                <JobArtifact id={artifact} />
              </span>
            ),
          ],
          ['Priority', job.priority],
          ['Created', <MomentBy key="c" at={job.createdAt} by={job.createdBy} />],
          ['Due', <Moment key="d" at={job.runAt} />],
          ['Start by', job.startBefore && <Moment at={job.startBefore} />],
          ['Ended', job.finishedAt && <Moment at={job.finishedAt} />],
          ['Started late by', job.lateBy === null ? null : durationText(job.lateBy)],
          ['Key', job.key && <Found filter={{ key: job.key }} text={job.key} />],
          [
            'Schedule',
            job.schedule && (
              <To path={`/schedules/${encodeURIComponent(job.schedule)}`} text={job.schedule} />
            ),
          ],
          ['Occurrence', job.scheduledAt && <MomentBy at={job.scheduledAt} by={job.scheduledBy} />],
          ['Batch', job.batch && <To path={`/batches/${job.batch}`} text={shortId(job.batch)} />],
          [
            'Workflow',
            job.workflow && <To path={`/workflows/${job.workflow}`} text={shortId(job.workflow)} />,
          ],
          ['Delivery', job.delivery],
          ['Timeout', job.timeout],
          ['Failures', `${job.failures} of ${job.maxAttempts}`],
          ['Retry', retryText(job)],
          ['Concurrency key', job.concurrencyKey],
          ['Needs', labelsText(job.requires)],
          ['Tenant', job.tenant],
        ]}
      />
      {others !== null && <JsonView value={others} label="More about the job" />}
    </section>
  );
}

function To({ path, text }: { readonly path: string; readonly text: ComponentChildren }) {
  return <a href={addressOf(path)}>{text}</a>;
}

function Found({ filter, text }: { readonly filter: JobFilter; readonly text: string }) {
  return <a href={addressOf(addressWith('/jobs', filter))}>{text}</a>;
}

function MomentBy({ at, by }: { readonly at: string; readonly by: string | null }) {
  return (
    <>
      <Moment at={at} />
      {by !== null && <span class="soft"> by {by}</span>}
    </>
  );
}

function retryText({ delivery, retry: { backoff, onWorkerLost } }: Job): string | null {
  if (delivery === 'at-most-once') return 'never';
  const pause = `after ${backoff?.base}, times ${backoff?.factor}, up to ${backoff?.max}`;
  return `${pause}; lost workers ${onWorkerLost?.maxAttempts}`;
}

function labelsText(labels: Job['requires']): string | null {
  const texts = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return texts.length === 0 ? null : texts.join(', ');
}
