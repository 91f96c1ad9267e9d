import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { query, setQuery } from '../routing/location.js';

/** One of several views of the same thing. */
export interface Tab {
  readonly name: string;
  readonly title: ComponentChildren;
  readonly render: () => ComponentChildren;
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly Tab[];
  /** The parameter of the query that says which one is open; default `tab`. */
  readonly parameter?: string;
}

/** Views of which one is open; the address says which. */
export function Tabs({ label, tabs, parameter = 'tab' }: TabsProps) {
  const id = useId();
  const asked = query.value.get(parameter);
  const found = tabs.findIndex(({ name }) => name === asked);
  const open = Math.max(0, found);
  const choose = (at: number) => setQuery({ [parameter]: at === 0 ? null : tabs[at]!.name });
  const step = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const next = (open + by + tabs.length) % tabs.length;
    choose(next);
    document.getElementById(`${id}-${next}`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label}>
        {tabs.map(({ name, title }, at) => (
          <button
            key={name}
            id={`${id}-${at}`}
            type="button"
            role="tab"
            aria-selected={at === open}
            aria-controls={`${id}-panel`}
            tabIndex={at === open ? 0 : -1}
            onClick={() => choose(at)}
            onKeyDown={step}
          >
            {title}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${open}`} class="tab-panel">
        {tabs[open]?.render()}
      </div>
    </>
  );
}
