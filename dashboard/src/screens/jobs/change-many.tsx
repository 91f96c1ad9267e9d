import { useState } from 'preact/hooks';
import type { ManyVerb } from '../../../../src/core/wire.js';
import { nodeTime } from '../../api/client.js';
import { may, session } from '../../api/session.js';
import { plural } from '../../parts/duration-text.js';
import { Icon } from '../../parts/icon.js';
import { Menu } from '../../parts/menu.js';
import { bodyFilter, filterOptions, type JobFilter, textOfFilter } from './job-filter.js';
import { MANY_WORDS, ManyDialog } from './many-dialog.js';
import type { Choice } from './many-work.js';

/** The states that jobs may have for a change. */
const STATES_FOR: Readonly<Record<ManyVerb, readonly string[]>> = {
  cancel: ['blocked', 'pending', 'running'],
  redrive: ['failed', 'cancelled'],
  hold: ['blocked', 'pending'],
  release: ['blocked', 'pending'],
  delete: ['succeeded', 'failed', 'cancelled', 'skipped'],
};
const VERBS = Object.keys(STATES_FOR) as readonly ManyVerb[];

interface ChangeManyProps {
  readonly filter: JobFilter;
  /** The ids of the jobs that somebody has chosen one by one. */
  readonly chosen: ReadonlySet<string>;
  readonly onForget: () => void;
  readonly onChanged: () => void;
}

interface Asked {
  readonly verb: ManyVerb;
  readonly choice: Choice;
  readonly which: string;
  readonly cli: string;
}

/** Whether somebody may choose jobs one by one to change them together: a restricted key changes many by filter only. */
export function mayChoose(): boolean {
  return may('submit') && session.value?.queues == null && session.value?.tasks == null;
}

/** Changes of the jobs that were chosen, or of all that fit the filter. */
export function ChangeMany({ filter, chosen, onForget, onChanged }: ChangeManyProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  if (!may('submit')) return null;
  return (
    <>
      {chosen.size > 0 ? (
        <Chosen ids={[...chosen]} onAsk={setAsked} onForget={onForget} />
      ) : (
        <Menu
          button={
            <>
              Change all that fit <Icon name="down" />
            </>
          }
        >
          {VERBS.map((verb) => (
            <FilterVerb key={verb} verb={verb} filter={filter} onAsk={setAsked} />
          ))}
        </Menu>
      )}
      {asked && <ManyDialog {...asked} onClose={() => setAsked(null)} onChanged={onChanged} />}
    </>
  );
}

interface VerbProps {
  readonly onAsk: (asked: Asked) => void;
}

function FilterVerb({
  verb,
  filter,
  onAsk,
}: VerbProps & { readonly verb: ManyVerb; readonly filter: JobFilter }) {
  const narrowed = narrowedTo(verb, filter);
  const ask = () => {
    const body = bodyFilter(narrowed!, nodeTime());
    const text = textOfFilter(narrowed!);
    onAsk({
      verb,
      choice: { filter: body },
      which: text === '' ? 'All jobs for which this is possible.' : text,
      cli: ['punctual job', cliVerb(verb), text === '' ? '--all' : filterOptions(narrowed!), '--yes'].join(
        ' ',
      ),
    });
  };
  return (
    <button type="button" class="menu-item" disabled={narrowed === null} onClick={ask}>
      {MANY_WORDS[verb].does} …
    </button>
  );
}

/** The filter with those of its states in which jobs can be changed; null if there is none. */
function narrowedTo(verb: ManyVerb, filter: JobFilter): JobFilter | null {
  const { state, ...rest } = filter;
  if (state === undefined) return filter;
  const possible = state.split(',').filter((each) => STATES_FOR[verb].includes(each));
  return possible.length === 0 ? null : { state: possible.join(','), ...rest };
}

function cliVerb(verb: ManyVerb): string {
  return verb === 'redrive' ? 'retry' : verb;
}

function Chosen({
  ids,
  onAsk,
  onForget,
}: VerbProps & { readonly ids: readonly string[]; readonly onForget: () => void }) {
  return (
    <fieldset class="jobs-chosen" aria-label="The chosen jobs">
      <b class="figure">{plural(ids.length, 'job')} chosen</b>
      {VERBS.map((verb) => (
        <button
          key={verb}
          type="button"
          class={`button button-small${MANY_WORDS[verb].isDangerous ? ' button-bad-quiet' : ''}`}
          onClick={() =>
            onAsk({
              verb,
              choice: { ids },
              which: `${plural(ids.length, 'chosen job')}.`,
              cli: `punctual job ${cliVerb(verb)} ${ids.join(' ')}`,
            })
          }
        >
          {MANY_WORDS[verb].does}
        </button>
      ))}
      <button type="button" class="button button-icon" aria-label="Choose none" onClick={onForget}>
        <Icon name="close" />
      </button>
    </fieldset>
  );
}
