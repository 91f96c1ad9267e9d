import { useState } from 'preact/hooks';
import type { Job } from '../../../../src/core/job.js';
import type { ErrorGroupView, ManyVerb } from '../../../../src/core/wire.js';
import { nodeTime } from '../../api/client.js';
import { useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { plural, shortCountText } from '../../parts/duration-text.js';
import { Icon } from '../../parts/icon.js';
import { Moment } from '../../parts/moment.js';
import { ResourceProblem } from '../../parts/problem-note.js';
import { Sparkline } from '../../parts/sparkline.js';
import { addressOf } from '../../routing/root.js';
import { ErrorText } from '../jobs/error-text.js';
import { addressWith, bodyFilter, filterOptions, type JobFilter } from '../jobs/job-filter.js';
import { shortId } from '../jobs/job-words.js';
import { ManyDialog } from '../jobs/many-dialog.js';

interface ErrorGroupProps {
  readonly group: ErrorGroupView;
  /** The queue that the groups are narrowed to. */
  readonly queue: string | undefined;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onChanged: () => void;
}

/** One group: what failed, how often and since when, and what can be done about all of it. */
export function ErrorGroup({ group, queue, isOpen, onToggle, onChanged }: ErrorGroupProps) {
  const { task, code, message, count, counts, firstSeen, lastSeen } = group;
  const filter = filterOf(group, queue);
  return (
    <li class="card errors-group">
      <div class="errors-what">
        <button type="button" class="errors-toggle" aria-expanded={isOpen} onClick={onToggle}>
          <Icon name={isOpen ? 'down' : 'right'} />
          <span class="errors-message">
            {code !== null && <span class="errors-code">{code}</span>}{' '}
            {message === '' ? 'no message' : message}
          </span>
        </button>
        <span class="errors-task">{task ?? 'calls and programs'}</span>
      </div>
      <div class="errors-count">
        <b class="figure">{shortCountText(count)}</b>
        <span class="soft">{count === 1 ? 'job' : 'jobs'}</span>
      </div>
      <div class="errors-line">
        <Sparkline values={counts} tone="bad" label={`${plural(count, 'job')} over the time shown`} />
      </div>
      <dl class="errors-times">
        <div>
          <dt>first</dt>
          <dd>
            <Moment at={firstSeen} />
          </dd>
        </div>
        <div>
          <dt>last</dt>
          <dd>
            <Moment at={lastSeen} />
          </dd>
        </div>
      </dl>
      <div class="errors-actions">
        <a class="button button-small" href={addressOf(addressWith('/jobs', filter))}>
          Jobs
        </a>
        <GroupActions group={group} filter={filter} onChanged={onChanged} />
      </div>
      {isOpen && <Sample id={group.exampleJobId} />}
    </li>
  );
}

/** The failed jobs of a group. With their task, fewer errors have to be looked at. */
function filterOf({ fingerprint, task }: ErrorGroupView, queue: string | undefined): JobFilter {
  return {
    state: 'failed',
    fingerprint,
    ...(task !== null && { task }),
    ...(queue !== undefined && { queue }),
  };
}

interface GroupActionsProps {
  readonly group: ErrorGroupView;
  readonly filter: JobFilter;
  readonly onChanged: () => void;
}

function GroupActions({ group, filter, onChanged }: GroupActionsProps) {
  const [verb, setVerb] = useState<ManyVerb | null>(null);
  if (!may('submit')) return null;
  const command = verb === 'delete' ? 'delete' : 'retry';
  return (
    <>
      <button type="button" class="button button-small" onClick={() => setVerb('redrive')}>
        Retry all …
      </button>
      <button type="button" class="button button-small button-bad-quiet" onClick={() => setVerb('delete')}>
        Delete …
      </button>
      {verb !== null && (
        <ManyDialog
          verb={verb}
          choice={{ filter: bodyFilter(filter, nodeTime()) }}
          which={
            <>
              All failed jobs like this, whenever they failed: {group.task ?? 'calls and programs'},{' '}
              {group.code} {group.message}
            </>
          }
          cli={`punctual job ${command} ${filterOptions(filter)} --yes`}
          onClose={() => setVerb(null)}
          onChanged={onChanged}
        />
      )}
    </>
  );
}

/** The job of the group that failed last, with its whole error. */
function Sample({ id }: { readonly id: string }) {
  const job = useResource<Job>(`/v1/jobs/${id}`);
  const found = job.data.value;
  return (
    <div class="errors-sample">
      <ResourceProblem resource={job} />
      {found && (
        <>
          <p>
            The last one: <a href={addressOf(`/jobs/${id}`)}>{shortId(id)}</a>
            {found.key !== null && <span class="soft"> with the key {found.key}</span>}, in queue{' '}
            <a href={addressOf(`/queues/${encodeURIComponent(found.queue)}`)}>{found.queue}</a>, after{' '}
            {plural(found.attempt, 'attempt')}.
          </p>
          {found.error ? (
            <ErrorText error={found.error} />
          ) : (
            <p class="soft">It runs again, or was changed since.</p>
          )}
        </>
      )}
    </div>
  );
}
