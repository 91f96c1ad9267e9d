import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Resource } from '../api/resource.js';
import { ResourceProblem } from './problem-note.js';

interface PanelProps<T> {
  readonly title: ComponentChildren;
  /** What stands at the right of the title. */
  readonly aside?: ComponentChildren;
  readonly resource: Resource<T>;
  readonly children: (data: T) => ComponentChildren;
  readonly class?: string;
}

/** A card that shows one resource: a placeholder until it is there, what went wrong, and then what it is. */
export function Panel<T>({ title, aside, resource, children, class: more = '' }: PanelProps<T>) {
  const id = useId();
  const data = resource.data.value;
  return (
    <section class={`card ${more}`} aria-labelledby={id} aria-busy={data === undefined}>
      <header class="card-top">
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      <ResourceProblem resource={resource} />
      {data !== undefined && children(data)}
      {data === undefined && resource.problem.value === null && <div class="placeholder" />}
    </section>
  );
}

interface ScreenTopProps {
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The top of a screen: its title, and what can be done there. */
export function ScreenTop({ title, children }: ScreenTopProps) {
  return (
    <header class="screen-top">
      <h1>{title}</h1>
      <div class="screen-actions">{children}</div>
    </header>
  );
}
