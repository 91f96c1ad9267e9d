import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { ListedJob } from '../../../../src/core/job.js';
import { Icon } from '../../parts/icon.js';
import { goTo } from '../../routing/location.js';
import { type KnownValue, useKnownValues } from './filter-values.js';
import {
  FILTER_NAMES,
  filterOfText,
  type JobFilter,
  type Term,
  termsOf,
  termText,
  textOfFilter,
} from './job-filter.js';

interface QueryBarProps {
  readonly filter: JobFilter;
  readonly onChange: (filter: JobFilter) => void;
  /** The jobs that are listed, whose names are offered as well. */
  readonly rows: readonly ListedJob[];
}

/** Something that can be taken over into the text by choosing it. */
interface Offer {
  /** What becomes of the term. */
  readonly text: string;
  readonly title: string;
  readonly words: string | undefined;
  /** Whether the term is whole with it. */
  readonly isWhole: boolean;
}

const MOST_OFFERS = 12;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Filters as a line of text, with what can stand where the cursor is. */
export function QueryBar({ filter, onChange, rows }: QueryBarProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const shown = textOfFilter(filter);
  const [text, setText] = useState(shown);
  const [caret, setCaret] = useState<number | null>(null);
  const [chosen, setChosen] = useState(-1);
  const [wrong, setWrong] = useState<string | null>(null);
  useEffect(() => {
    setText(shown);
    setWrong(null);
  }, [shown]);

  const term = caret === null ? null : termAt(text, caret);
  const values = useKnownValues(term?.value == null ? null : term.name, rows);
  const offers = term === null ? [] : offersFor(term, values, text);
  const isOpen = offers.length > 0;

  const apply = (next: string) => {
    if (ID.test(next.trim())) return goTo(`/jobs/${next.trim()}`);
    const read = filterOfText(next);
    if ('wrong' in read) return setWrong(read.wrong);
    setWrong(null);
    setCaret(null);
    setChosen(-1);
    onChange(read.filter);
  };
  const take = (offer: Offer) => {
    const before = text.slice(0, term!.from) + offer.text + (offer.isWhole ? ' ' : '');
    const next = before + text.slice(term!.to).trimStart();
    setText(next);
    setChosen(-1);
    setCaret(before.length);
    const input = field.current!;
    input.focus();
    // Not left to the next drawing: what is typed before that has its place, too.
    input.value = next;
    input.setSelectionRange(before.length, before.length);
    if (offer.isWhole && 'filter' in filterOfText(next)) {
      onChange((filterOfText(next) as { filter: JobFilter }).filter);
    }
  };
  const press = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (event.key === 'Escape' && isOpen) setCaret(null);
    else if (event.key === ' ' && event.ctrlKey) setCaret(field.current!.selectionStart);
    else if (by !== 0 && isOpen)
      setChosen((chosen + by + offers.length + (chosen < 0 && by < 0 ? 1 : 0)) % offers.length);
    else if (event.key === 'Enter' && chosen >= 0 && isOpen) take(offers[chosen]!);
    else if (event.key === 'Enter') apply(text);
    else return;
    event.preventDefault();
  };
  const follow = () => setCaret(field.current!.selectionStart);
  return (
    <div class="jobs-query">
      <div class="jobs-query-line">
        <Icon name="search" />
        <input
          ref={field}
          type="text"
          role="combobox"
          data-search
          aria-label="Filter jobs"
          aria-expanded={isOpen}
          aria-controls={`${id}-offers`}
          aria-activedescendant={isOpen && chosen >= 0 ? `${id}-${chosen}` : undefined}
          aria-describedby={wrong === null ? undefined : `${id}-wrong`}
          aria-invalid={wrong !== null}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="state:failed task:send-mail payload.customer=7, or the id of a job"
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            setCaret(currentTarget.selectionStart);
            setChosen(-1);
          }}
          onFocus={follow}
          onClick={follow}
          onKeyDown={press}
          onBlur={() => setCaret(null)}
        />
        {text !== '' && (
          <button
            type="button"
            class="button button-icon"
            aria-label="Clear the filter"
            onClick={() => apply('')}
          >
            <Icon name="close" />
          </button>
        )}
      </div>
      <div
        id={`${id}-offers`}
        class="jobs-offers"
        role="listbox"
        aria-label="What can stand here"
        hidden={!isOpen}
      >
        {offers.map((offer, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the chosen one
          <div
            key={offer.text}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === chosen}
            // The field would lose the focus, and the list be gone before the click.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(offer)}
          >
            <span class="mono">{offer.title}</span>
            <span class="soft">{offer.words}</span>
          </div>
        ))}
      </div>
      {wrong !== null && (
        <p id={`${id}-wrong`} class="jobs-wrong" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}

/** The term at the caret; an empty one between terms. */
function termAt(text: string, caret: number): Term {
  const found = termsOf(text).find(({ from, to }) => from <= caret && caret <= to);
  return found ?? { from: caret, to: caret, name: '', value: null };
}

function offersFor({ name, value }: Term, values: readonly KnownValue[], text: string): readonly Offer[] {
  if (value === null) {
    const used = new Set(termsOf(text).map((term) => term.name));
    return FILTER_NAMES.filter((each) => each.name.toLowerCase().startsWith(name.toLowerCase()))
      .filter((each) => each.name === name || !used.has(each.name))
      .map((each) => {
        const isPayload = each.name.endsWith('.');
        const words = each.example ? `${each.words}, such as ${each.example}` : each.words;
        return { text: isPayload ? each.name : `${each.name}:`, title: each.name, words, isWhole: false };
      });
  }
  // Of states there may be several: what is before the last comma stays.
  const comma = name === 'state' ? value.lastIndexOf(',') + 1 : 0;
  const [before, typed] = [value.slice(0, comma), value.slice(comma).toLowerCase()];
  const taken = new Set(before.split(','));
  return values
    .filter((each) => each.value.toLowerCase().includes(typed) || each.words?.toLowerCase().includes(typed))
    .filter((each) => each.value.toLowerCase() !== typed && !taken.has(each.value))
    .slice(0, MOST_OFFERS)
    .map((each) => ({
      text: termText(name, before + each.value),
      title: each.value,
      words: each.words,
      isWhole: true,
    }));
}
