import { Choice } from '../../parts/choice.js';
import type { JobFilter } from './job-filter.js';

/** The states that are looked for most. */
const CHOICES = [
  ['', 'All'],
  ['pending,blocked', 'Waiting'],
  ['running', 'Running'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
] as const;

interface StateChoiceProps {
  readonly filter: JobFilter;
  readonly onChange: (filter: JobFilter) => void;
}

/** One click for the state; the other filters stay. */
export function StateChoice({ filter, onChange }: StateChoiceProps) {
  const { state: now = '', ...rest } = filter;
  const chosen = CHOICES.find(([states]) => sorted(states) === sorted(now))?.[0] ?? now;
  return (
    <Choice<string>
      label="State"
      options={CHOICES}
      chosen={chosen}
      onChoose={(state) => onChange(state === '' ? rest : { state, ...rest })}
    />
  );
}

function sorted(states: string): string {
  return states.split(',').sort().join();
}
