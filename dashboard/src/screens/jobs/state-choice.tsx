import type { JobFilter } from './job-filter.js';

/** The states that are looked for most. */
const CHOICES: readonly (readonly [title: string, state: string | undefined])[] = [
  ['All', undefined],
  ['Waiting', 'pending,blocked'],
  ['Running', 'running'],
  ['Succeeded', 'succeeded'],
  ['Failed', 'failed'],
  ['Cancelled', 'cancelled'],
];

interface StateChoiceProps {
  readonly filter: JobFilter;
  readonly onChange: (filter: JobFilter) => void;
}

/** One click for the state; the other filters stay. */
export function StateChoice({ filter, onChange }: StateChoiceProps) {
  const { state: now, ...rest } = filter;
  return (
    <fieldset class="choice" aria-label="State">
      {CHOICES.map(([title, state]) => (
        <button
          key={title}
          type="button"
          aria-pressed={sorted(state) === sorted(now)}
          onClick={() => onChange(state === undefined ? rest : { state, ...rest })}
        >
          {title}
        </button>
      ))}
    </fieldset>
  );
}

function sorted(states: string | undefined): string | undefined {
  return states?.split(',').sort().join();
}
