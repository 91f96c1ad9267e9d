import { useState } from 'preact/hooks';
import { call } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import { CopyAs } from '../../parts/action.js';
import { Field, TextField } from '../../parts/form.js';
import { ScreenTop } from '../../parts/panel.js';
import { toast } from '../../parts/toasts.js';
import { goTo } from '../../routing/location.js';
import { useExpressionWords } from './expression-words.js';
import { OccurrenceList } from './occurrence-list.js';
import { type TypedTimes, usePreview } from './use-preview.js';

/** A form with a preview of the occurrences. */
export default function NewScheduleScreen() {
  const [name, setName] = useState('');
  const [task, setTask] = useState('');
  const [kind, setKind] = useState<'cron' | 'every'>('cron');
  const [cron, setCron] = useState('0 3 * * *');
  const [every, setEvery] = useState('15m');
  const [timezone, setTimezone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [payload, setPayload] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const times: TypedTimes = kind === 'cron' ? { cron, timezone } : { every };
  const preview = usePreview(times);
  const words = useExpressionWords(kind === 'cron' ? cron : undefined);
  // The payload goes out as it was typed, so that no number loses digits.
  const rest = JSON.stringify({ name, task, ...times });
  const body = payload.trim() === '' ? rest : `${rest.slice(0, -1)},"payload":${payload}}`;
  const when = kind === 'cron' ? `--cron '${cron}' --timezone ${timezone}` : `--every ${every}`;
  const cli = `punctual schedule create ${name || 'NAME'} ${when} --task ${task || 'TASK'}${payload.trim() === '' ? '' : ` --payload '${payload}'`}`;
  const create = async (event: Event) => {
    event.preventDefault();
    try {
      await call('POST', '/v1/schedules', { body });
      toast({ kind: 'good', text: `${name} is there.` });
      goTo(`/schedules/${encodeURIComponent(name)}`);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <>
      <ScreenTop title="New schedule">
        <CopyAs method="POST" path="/v1/schedules" body={body} cli={cli} />
      </ScreenTop>
      <div class="grid">
        <form class="form card" onSubmit={(event) => void create(event)}>
          <TextField
            label="Name"
            isRequired
            {...{ value: name, onChange: setName, problem, pointer: '/name' }}
          />
          <TextField
            label="Task"
            hint="The handler of that name, or a task that was defined"
            isRequired
            {...{ value: task, onChange: setTask, problem, pointer: '/task' }}
          />
          <Field label="Due">
            {(attributes) => (
              <select
                {...attributes}
                value={kind}
                onChange={({ currentTarget }) => setKind(currentTarget.value === 'every' ? 'every' : 'cron')}
              >
                <option value="cron">by a cron expression</option>
                <option value="every">again and again after a time</option>
              </select>
            )}
          </Field>
          {kind === 'cron' ? (
            <div class="field-pair">
              <TextField
                label="Expression"
                hint={words ?? 'Minute, hour, day, month, weekday'}
                {...{ value: cron, onChange: setCron, problem: problem ?? preview.problem, pointer: '/cron' }}
              />
              <TextField
                label="Time zone"
                {...{
                  value: timezone,
                  onChange: setTimezone,
                  problem: problem ?? preview.problem,
                  pointer: '/timezone',
                }}
              />
            </div>
          ) : (
            <TextField
              label="Every"
              hint="Such as 15m or 6h"
              {...{
                value: every,
                onChange: setEvery,
                problem: problem ?? preview.problem,
                pointer: '/every',
              }}
            />
          )}
          <TextField
            label="Payload"
            hint="JSON; empty for none"
            {...{ value: payload, onChange: setPayload, problem, pointer: '/payload' }}
          />
          {problem && (
            <p class="notice notice-bad" role="alert">
              {problem.message}
            </p>
          )}
          <div class="dialog-buttons">
            <button type="submit" class="button button-main">
              Create
            </button>
          </div>
        </form>
        <section class="card" aria-labelledby="preview-title">
          <header class="card-top">
            <h2 id="preview-title">Next ten</h2>
          </header>
          {preview.problem ? (
            <p class="notice notice-bad" role="status">
              {preview.problem.message}
            </p>
          ) : (
            <OccurrenceList occurrences={preview.occurrences} timezone={kind === 'cron' ? timezone : 'UTC'} />
          )}
        </section>
      </div>
    </>
  );
}
