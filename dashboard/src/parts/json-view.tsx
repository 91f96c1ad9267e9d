import { useState } from 'preact/hooks';
import { ExactNumber } from '../api/exact-json.js';
import { countText } from './duration-text.js';

/** JSON for people: text only, whatever stands in it. What is large is cut until somebody wants to see it. */

interface JsonViewProps {
  readonly value: unknown;
  /** What it is, for the label. */
  readonly label: string;
}

const OPEN_DEPTH = 2;
const MOST_ENTRIES = 100;
const MOST_CHARACTERS = 1_000;

export function JsonView({ value, label }: JsonViewProps) {
  return (
    <section class="json" aria-label={label}>
      <Value value={value} depth={0} />
    </section>
  );
}

interface ValueProps {
  readonly value: unknown;
  readonly depth: number;
}

function Value({ value, depth }: ValueProps) {
  if (typeof value === 'string') return <Text text={value} />;
  if (value instanceof ExactNumber) return <span class="json-number">{value.text}</span>;
  if (value === null || typeof value !== 'object')
    return <span class={`json-${value === null ? 'null' : typeof value}`}>{String(value)}</span>;
  return <Branch value={value} depth={depth} />;
}

function Text({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  if (text.length <= MOST_CHARACTERS || isWhole)
    return <span class="json-string">{JSON.stringify(text)}</span>;
  return (
    <span class="json-string">
      {JSON.stringify(text.slice(0, MOST_CHARACTERS))}
      <button type="button" class="link" onClick={() => setWhole(true)}>
        … show all {countText(text.length)} characters
      </button>
    </span>
  );
}

function Branch({ value, depth }: { readonly value: object; readonly depth: number }) {
  const isList = Array.isArray(value);
  const entries = isList ? value.map((each, i) => [String(i), each] as const) : Object.entries(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= MOST_ENTRIES);
  const [most, setMost] = useState(MOST_ENTRIES);
  const [first, last] = isList ? '[]' : '{}';
  if (entries.length === 0) return <span>{`${first}${last}`}</span>;
  const summary = `${first} ${countText(entries.length)} ${isList ? 'items' : 'fields'} ${last}`;
  return (
    <>
      <button type="button" class="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? first : summary}
      </button>
      {isOpen && (
        <>
          <ul>
            {entries.slice(0, most).map(([name, each]) => (
              <li key={name}>
                {!isList && <span class="json-name">{JSON.stringify(name)}: </span>}
                <Value value={each} depth={depth + 1} />
              </li>
            ))}
          </ul>
          {entries.length > most && (
            <button type="button" class="link" onClick={() => setMost(most * 10)}>
              … {countText(entries.length - most)} more
            </button>
          )}
          <span>{last}</span>
        </>
      )}
    </>
  );
}
