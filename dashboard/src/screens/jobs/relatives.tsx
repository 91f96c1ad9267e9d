import { useState } from 'preact/hooks';
import type { Job, RelativeList } from '../../../../src/core/job.js';
import type { Workflow } from '../../../../src/core/workflow.js';
import { useResource } from '../../api/resource.js';
import { countText, plural } from '../../parts/duration-text.js';
import { StateBadge } from '../../parts/state-badge.js';
import { addressOf } from '../../routing/root.js';
import { shortId } from './job-words.js';

const LISTS: readonly (readonly [list: RelativeList, title: string])[] = [
  ['dependsOn', 'Waits for'],
  ['dependents', 'Waited for by'],
  ['ancestors', 'All before it'],
  ['descendants', 'All behind it'],
];
const MOST_SHOWN = 12;

/** The steps around a job that is a step of a workflow. */
export function Relatives({ job }: { readonly job: Job }) {
  const { workflow } = job;
  const found = useResource<Workflow>(workflow === null ? null : `/v1/workflows/${workflow}`, {
    ...{ events: ['job.*', 'workflow.*'], about: workflow ?? '' },
  }).data.value;
  if (workflow === null) return null;
  const steps = new Map(
    Object.entries(found?.jobs ?? {}).map(([name, { id, state }]) => [id, { name, state }] as const),
  );
  const own = steps.get(job.id);
  return (
    <section class="card" aria-labelledby="steps-title">
      <header class="card-top">
        <h2 id="steps-title">{own ? `Step ${own.name}` : 'Step'} of a workflow</h2>
        <a href={addressOf(`/workflows/${workflow}`)}>{found?.name ?? 'Open the workflow'}</a>
      </header>
      <div class="job-steps">
        {LISTS.map(([list, title]) => (
          <Steps
            key={list}
            title={title}
            ids={job[list]}
            isCut={job.relativesCut?.includes(list) ?? false}
            stepOf={(id) => steps.get(id)}
          />
        ))}
      </div>
    </section>
  );
}

interface StepsProps {
  readonly title: string;
  readonly ids: readonly string[];
  readonly isCut: boolean;
  readonly stepOf: (id: string) => { readonly name: string; readonly state: string } | undefined;
}

function Steps({ title, ids, isCut, stepOf }: StepsProps) {
  const [most, setMost] = useState(MOST_SHOWN);
  return (
    <div>
      <h3>
        {title} <span class="soft figure">{`${countText(ids.length)}${isCut ? '+' : ''}`}</span>
      </h3>
      {ids.length === 0 ? (
        <p class="soft">nothing</p>
      ) : (
        <ul>
          {ids.slice(0, most).map((id) => {
            const step = stepOf(id);
            return (
              <li key={id}>
                <a href={addressOf(`/jobs/${id}`)}>{step?.name ?? shortId(id)}</a>{' '}
                {step && <StateBadge state={step.state} />}
              </li>
            );
          })}
        </ul>
      )}
      {ids.length > most && (
        <button type="button" class="link" onClick={() => setMost(most * 10)}>
          {plural(ids.length - most, 'more', 'more')}
        </button>
      )}
    </div>
  );
}
