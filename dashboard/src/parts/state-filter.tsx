import { query, setQuery } from '../routing/location.js';

interface StateFilterProps {
  readonly states: readonly string[];
}

/** Narrows a list to a state; the choice is in the address. */
export function StateFilter({ states }: StateFilterProps) {
  const chosen = query.value.get('state');
  return (
    <fieldset class="button-group">
      <legend class="visually-hidden">State</legend>
      {[null, ...states].map((state) => (
        <button
          key={state ?? 'all'}
          type="button"
          class="button button-small"
          aria-pressed={state === chosen}
          onClick={() => setQuery({ state })}
        >
          {state ?? 'all'}
        </button>
      ))}
    </fieldset>
  );
}
