import { useState } from 'preact/hooks';
import type { ScheduleView } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { CopyAs } from '../../parts/action.js';
import { ScreenTop } from '../../parts/panel.js';
import { ResourceProblem } from '../../parts/problem-note.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { changeOf, type Draft, draftOf, hasMoreThanForm } from './schedule-draft.js';
import { ScheduleForm } from './schedule-form.js';

/** Changes a schedule: only what was changed is sent, so that what the form does not show stays as it is. */
export default function EditScheduleScreen({ params: { name = '' } }: ScreenProps) {
  const path = `/v1/schedules/${encodeURIComponent(name)}`;
  const schedule = useResource<ScheduleView>(path, { isExact: true });
  const view = schedule.data.value;
  if (view) return <Edit key={view.id} name={name} path={path} view={view} />;
  return (
    <>
      <ScreenTop title="Edit schedule" />
      <ResourceProblem resource={schedule} />
      {schedule.problem.value === null && <div class="placeholder" />}
    </>
  );
}

interface EditProps {
  readonly name: string;
  readonly path: string;
  readonly view: ScheduleView;
}

function Edit({ name, path, view }: EditProps) {
  // What somebody else changes meanwhile is not what was seen when this was opened.
  const [before] = useState(() => draftOf(view));
  const [draft, setDraft] = useState<Draft>(before);
  const change = changeOf(name, before, draft);
  const isFixed = draft.runs === before.runs && hasMoreThanForm(view);
  const does = before.runs === 'program' ? 'runs a program' : `calls ${before.url}`;
  return (
    <>
      <ScreenTop
        title={
          <>
            Edit <span class="mono">{name}</span>
          </>
        }
      >
        {change && <CopyAs method="PATCH" path={path} body={change.body} cli={change.cli} />}
      </ScreenTop>
      {view.managedBy !== null && (
        <p class="notice notice-warn" role="status">
          The program {view.managedBy} keeps this schedule as its code says: it will undo what is changed here
          when it starts again.
        </p>
      )}
      <ScheduleForm
        draft={draft}
        onChange={(more) => setDraft({ ...draft, ...more })}
        name={name}
        fixedTarget={isFixed ? `It ${does}, with more than this form can show; the API changes that.` : null}
        request={change && { method: 'PATCH', path, body: change.body }}
        verb="Change it"
        done={`${name} is changed from its next occurrence on.`}
      >
        <a class="button" href={addressOf(`/schedules/${encodeURIComponent(name)}`)}>
          Keep as it is
        </a>
      </ScheduleForm>
    </>
  );
}
