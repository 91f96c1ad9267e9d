import { useState } from 'preact/hooks';
import { CopyAs } from '../../parts/action.js';
import { ScreenTop } from '../../parts/panel.js';
import { creationOf, EMPTY } from './schedule-draft.js';
import { ScheduleForm } from './schedule-form.js';

const PATH = '/v1/schedules';

/** Makes a schedule, with a preview of its occurrences while it is typed. */
export default function NewScheduleScreen() {
  const [name, setName] = useState('');
  const [draft, setDraft] = useState(EMPTY);
  const { body, cli } = creationOf(name, draft);
  return (
    <>
      <ScreenTop title="New schedule">
        <CopyAs method="POST" path={PATH} body={body} cli={cli} />
      </ScreenTop>
      <ScheduleForm
        draft={draft}
        onChange={(change) => setDraft({ ...draft, ...change })}
        name={name}
        onName={setName}
        request={{ method: 'POST', path: PATH, body }}
        verb="Create"
        done={`${name} is there.`}
      />
    </>
  );
}
