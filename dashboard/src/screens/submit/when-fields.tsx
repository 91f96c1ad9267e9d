import type { TaskView } from '../../../../src/core/wire.js';
import { nodeTime } from '../../api/client.js';
import { Field, fieldProblem } from '../../parts/field.js';
import { soon } from './draft.js';
import type { FieldsProps } from './fields.js';

interface WhenFieldsProps extends FieldsProps {
  readonly queues: readonly string[];
  /** The definition of the task, whose values are the defaults. */
  readonly task: TaskView | undefined;
}

/** Where the job waits, how urgent it is, and when it is due. */
export function WhenFields({ draft, onChange, problem, queues, task }: WhenFieldsProps) {
  const usual = task?.priority ?? 5;
  return (
    <div class="fields-row">
      <Field label="Queue" problem={fieldProblem(problem, '/queue')}>
        <input
          type="text"
          list="submit-queues"
          autocomplete="off"
          spellcheck={false}
          placeholder={task?.queue ?? 'default'}
          value={draft.queue}
          onInput={({ currentTarget }) => onChange({ queue: currentTarget.value })}
        />
      </Field>
      <datalist id="submit-queues">
        {queues.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Field label="Priority" problem={fieldProblem(problem, '/priority')}>
        <select
          value={draft.priority}
          onChange={({ currentTarget }) => onChange({ priority: currentTarget.value })}
        >
          <option value="">{usual} (usual)</option>
          {[9, 8, 7, 6, 5, 4, 3, 2, 1].map((each) => (
            <option key={each} value={String(each)}>
              {each}
              {each === 9 ? ', first' : each === 1 ? ', last' : ''}
            </option>
          ))}
        </select>
      </Field>
      <Field label="When">
        <select
          value={draft.when}
          onChange={({ currentTarget }) => {
            const when = currentTarget.value as typeof draft.when;
            onChange({ when, ...(when === 'at' && draft.at === '' && { at: soon(nodeTime()) }) });
          }}
        >
          <option value="now">now</option>
          <option value="delay">after a while</option>
          <option value="at">at a time</option>
        </select>
      </Field>
      {draft.when === 'delay' && (
        <Field label="After" problem={fieldProblem(problem, '/delay')} hint="such as 30s, 20m, 6h or 2d">
          <input
            type="text"
            required
            placeholder="30s"
            value={draft.delay}
            onInput={({ currentTarget }) => onChange({ delay: currentTarget.value })}
          />
        </Field>
      )}
      {draft.when === 'at' && (
        <Field label="At" problem={fieldProblem(problem, '/runAt')} hint="in your time zone">
          <input
            type="datetime-local"
            required
            value={draft.at}
            onInput={({ currentTarget }) => onChange({ at: currentTarget.value })}
          />
        </Field>
      )}
    </div>
  );
}
