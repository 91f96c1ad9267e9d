import type { Job } from '../../../../src/core/job.js';
import type { Why } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { countText, durationText } from '../../parts/duration-text.js';

/** Why a job that waits has not started, in a sentence with its figures. It passes with time, so it is asked again. */
export function WhyLine({ job }: { readonly job: Job }) {
  const { id, state, cancelRequestedAt } = job;
  const isAsked = state === 'pending' || state === 'blocked' || cancelRequestedAt !== null;
  const why = useResource<Why>(isAsked && job.finishedAt === null ? `/v1/jobs/${id}/why` : null, {
    ...{ events: ['job.*', 'queue.*'], about: id, everyMs: 4_000, atMostEveryMs: 1_000 },
  }).data.value;
  if (!why || !isAsked || job.finishedAt !== null) return null;
  const figures = Object.entries(why.figures).filter(
    ([, value]) => value !== null && typeof value !== 'object',
  );
  return (
    <section class="notice job-why" aria-label="Why it waits">
      <p>{why.detail}</p>
      {figures.length > 0 && (
        <dl>
          {figures.map(([name, value]) => (
            <div key={name}>
              <dt>{nameText(name)}</dt>
              <dd class="figure">{figureText(name, value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** `readyInQueue` as `ready in queue`; durations lose the unit of their names. */
function nameText(name: string): string {
  return name
    .replace(/Ms$/, '')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();
}

function figureText(name: string, value: unknown): string {
  if (typeof value !== 'number') return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
  return name.endsWith('Ms') ? durationText(value) : countText(value);
}
