import './errors.css';
import { useState } from 'preact/hooks';
import type { ErrorGroupsView, ErrorGroupView } from '../../../../src/core/wire.js';
import { type Resource, useResource } from '../../api/resource.js';
import { CopyAs } from '../../parts/action.js';
import { Choice } from '../../parts/choice.js';
import { plural } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { ScreenTop } from '../../parts/panel.js';
import { ResourceProblem } from '../../parts/problem-note.js';
import { quoted } from '../../parts/quoted.js';
import { query, setQuery } from '../../routing/location.js';
import { addressWith } from '../jobs/job-filter.js';
import { type AskedGroup, ErrorGroup, GroupDialog } from './error-group.js';

const WINDOWS = [
  ['1h', '1 hour'],
  ['6h', '6 hours'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
] as const;
const USUAL_WINDOW = '24h';
/** Grouping reads thousands of errors, so it is done again less often than other things. */
const AT_MOST_EVERY_MS = 10_000;
/** Groups that the API tells of unless it is asked for more. */
const MOST_GROUPS = 100;

/** Failed jobs, grouped by what their errors have in common. */
export default function ErrorsScreen() {
  const asked = Object.fromEntries(
    ['since', 'task', 'queue'].flatMap((name) => {
      const value = query.value.get(name);
      return value ? [[name, value]] : [];
    }),
  );
  const path = addressWith('/v1/errors', { since: USUAL_WINDOW, ...asked });
  const groups = useResource<ErrorGroupsView>(path, {
    ...{ events: ['job.failed'], atMostEveryMs: AT_MOST_EVERY_MS },
  });
  const [change, setChange] = useState<AskedGroup | null>(null);
  const options = Object.entries(asked).map(([name, value]) => ` --${name} ${quoted(value)}`);
  return (
    <>
      <ScreenTop title="Errors">
        <CopyAs method="GET" path={path} cli={`punctual job errors${options.join('')}`} />
      </ScreenTop>
      <Filters asked={asked} />
      <ResourceProblem resource={groups} />
      <Groups groups={groups} asked={asked} onAsk={setChange} />
      {change && (
        <GroupDialog asked={change} onClose={() => setChange(null)} onChanged={() => void groups.refresh()} />
      )}
    </>
  );
}

type Asked = Readonly<Record<string, string>>;

function Filters({ asked }: { readonly asked: Asked }) {
  const { since = USUAL_WINDOW } = asked;
  return (
    <div class="errors-bar">
      <Choice<string>
        label="How far back"
        options={WINDOWS}
        chosen={since}
        onChoose={(value) => setQuery({ since: value === USUAL_WINDOW ? null : value })}
      />
      <NameFilter name="task" value={asked.task ?? ''} />
      <NameFilter name="queue" value={asked.queue ?? ''} />
    </div>
  );
}

function NameFilter({ name, value }: { readonly name: 'task' | 'queue'; readonly value: string }) {
  return (
    <input
      type="text"
      aria-label={`Only of this ${name}`}
      placeholder={`${name} …`}
      spellcheck={false}
      {...(name === 'task' && { 'data-search': true })}
      value={value}
      onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value.trim() })}
    />
  );
}

interface GroupsProps {
  readonly groups: Resource<ErrorGroupsView>;
  readonly asked: Asked;
  readonly onAsk: (asked: AskedGroup) => void;
}

function Groups({ groups, asked, onAsk }: GroupsProps) {
  const [open, setOpen] = useState<string | null>(null);
  const found = groups.data.value;
  if (!found) return groups.problem.value === null ? <div class="placeholder" /> : null;
  if (found.data.length === 0) return <NoErrors asked={asked} />;
  const toggle = ({ fingerprint }: ErrorGroupView) => setOpen(open === fingerprint ? null : fingerprint);
  return (
    <>
      <ul class="errors-list">
        {found.data.map((group) => (
          <ErrorGroup
            key={group.fingerprint}
            group={group}
            queue={asked.queue}
            isOpen={open === group.fingerprint}
            onToggle={() => toggle(group)}
            onAsk={onAsk}
          />
        ))}
      </ul>
      <p class="errors-note soft">
        {found.complete ? '' : 'These are the newest only: '}
        {plural(found.examined, 'failed job')}
        {found.data.length < MOST_GROUPS
          ? ` in ${plural(found.data.length, 'group')}.`
          : `, of which these are the ${MOST_GROUPS} largest groups.`}
      </p>
    </>
  );
}

function NoErrors({ asked }: { readonly asked: Asked }) {
  const { since = USUAL_WINDOW } = asked;
  return (
    <EmptyState title="Nothing has failed" command={`punctual job errors --since ${quoted(since)}`}>
      <p>
        No job has ended as failed in this time{asked.task || asked.queue ? ', of what was asked for' : ''}.
      </p>
    </EmptyState>
  );
}
