import type { ComponentChildren } from 'preact';

/** A name and what it is. */
export type Fact = readonly [name: string, value: ComponentChildren];

interface FactsProps {
  /** Those whose value is null or undefined are left out. */
  readonly facts: readonly Fact[];
}

/** Names with their values, one below the other. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
