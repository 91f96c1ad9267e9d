import { Choice } from '../../parts/choice.js';
import { Field, fieldProblem } from '../../parts/field.js';
import { type Draft, mistakesOf } from './draft.js';
import type { FieldsProps } from './fields.js';
import { ProgramFields } from './program-fields.js';

const KINDS = [
  ['task', 'A task'],
  ['http', 'A call to a URL'],
  ['program', 'A program'],
  ['other', 'Another target'],
] as const;
const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD'];

interface WorkFieldsProps extends FieldsProps {
  /** The names of tasks that are known. */
  readonly tasks: readonly string[];
  readonly description: string | undefined;
}

/** What the job does. */
export function WorkFields({ draft, onChange, problem, tasks, description }: WorkFieldsProps) {
  return (
    <>
      <Choice label="What runs" options={KINDS} chosen={draft.kind} onChoose={(kind) => onChange({ kind })} />
      {draft.kind === 'task' && (
        <>
          <Field
            label="Task"
            problem={fieldProblem(problem, '/task')}
            {...(description !== undefined && { hint: description })}
          >
            <input
              type="text"
              list="submit-tasks"
              required
              autocomplete="off"
              spellcheck={false}
              placeholder="send-mail"
              value={draft.task}
              onInput={({ currentTarget }) => onChange({ task: currentTarget.value })}
            />
          </Field>
          <datalist id="submit-tasks">
            {tasks.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
      {draft.kind === 'http' && <CallFields draft={draft} onChange={onChange} problem={problem} />}
      {draft.kind === 'program' && <ProgramFields draft={draft} onChange={onChange} problem={problem} />}
      {draft.kind === 'other' && (
        <TargetField
          draft={draft}
          onChange={onChange}
          problem={problem}
          label="Target"
          hint="the whole target, as JSON"
        />
      )}
    </>
  );
}

function CallFields(props: FieldsProps) {
  const { draft, onChange, problem } = props;
  return (
    <>
      <div class="submit-call">
        <Field label="Method" problem={fieldProblem(problem, '/target/method')}>
          <select
            value={draft.method}
            onChange={({ currentTarget }) => onChange({ method: currentTarget.value })}
          >
            {METHODS.map((method) => (
              <option key={method}>{method}</option>
            ))}
          </select>
        </Field>
        <Field label="URL" problem={fieldProblem(problem, '/target/url')}>
          <input
            type="url"
            required
            placeholder="https://example.com/hook"
            value={draft.url}
            onInput={({ currentTarget }) => onChange({ url: currentTarget.value })}
          />
        </Field>
      </div>
      <Field
        label="Headers"
        problem={fieldProblem(problem, '/target/headers')}
        hint={
          'one in each line, such as x-team: blue; a secret as authorization: {"$secret": "name", "prefix": "Bearer "}'
        }
      >
        <textarea
          class="mono"
          rows={2}
          spellcheck={false}
          value={draft.headers}
          onInput={({ currentTarget }) => onChange({ headers: currentTarget.value })}
        />
      </Field>
      <details open={draft.target !== ''}>
        <summary>More about the call</summary>
        <TargetField
          {...props}
          label="Other fields of the target"
          hint={'JSON, such as {"expect": [200, 204], "timeout": "10s", "completion": "response"}'}
        />
      </details>
    </>
  );
}

interface TargetFieldProps extends FieldsProps {
  readonly label: string;
  readonly hint: string;
}

function TargetField({ draft, onChange, problem, label, hint }: TargetFieldProps) {
  const told = fieldProblem(problem, '/target', ['/target/method', '/target/url', '/target/headers']);
  return (
    <Field label={label} problem={mistakeOf(draft) ?? told} hint={hint}>
      <textarea
        class="mono"
        rows={4}
        spellcheck={false}
        value={draft.target}
        onInput={({ currentTarget }) => onChange({ target: currentTarget.value })}
      />
    </Field>
  );
}

function mistakeOf(draft: Draft): string | null {
  if (draft.target.trim() === '') return null;
  return mistakesOf(draft)['/target'] ?? null;
}
