import type { TaskView } from '../../../../src/core/wire.js';
import { Field, fieldProblem } from '../../parts/field.js';
import type { Draft } from './draft.js';
import type { FieldsProps } from './fields.js';

interface MoreFieldsProps extends FieldsProps {
  readonly task: TaskView | undefined;
  readonly isOpen: boolean;
}

/** Fields that are one line of text. */
type TextField = { [K in keyof Draft]: Draft[K] extends string ? K : never }[keyof Draft];

interface LineProps extends FieldsProps {
  readonly name: TextField;
  readonly label: string;
  readonly pointer: string;
  readonly hint?: string;
  readonly placeholder?: string | undefined;
}

function Line({ draft, onChange, problem, name, label, pointer, hint, placeholder }: LineProps) {
  return (
    <Field label={label} problem={fieldProblem(problem, pointer)} {...(hint !== undefined && { hint })}>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        {...(placeholder !== undefined && { placeholder })}
        value={draft[name] as string}
        onInput={({ currentTarget }) => onChange({ [name]: currentTarget.value })}
      />
    </Field>
  );
}

const MODES = ['keep', 'replace', 'debounce', 'throttle', 'reuse-when-ended'];

/** What most jobs leave as it is: key, delivery, retries, limits, labels. */
export function MoreFields({ task, isOpen, ...props }: MoreFieldsProps) {
  const { draft, onChange, problem } = props;
  const { retry, timeout, delivery } = task ?? {};
  const isWindowed = draft.keyMode === 'debounce' || draft.keyMode === 'throttle';
  return (
    <details class="submit-more" open={isOpen}>
      <summary>Key, delivery, retries, limits</summary>
      <div class="fields">
        <div class="fields-row">
          <Line
            {...props}
            name="key"
            label="Key"
            pointer="/key"
            hint="the same key again gives the same job"
          />
          <Field label="If the key has a job" problem={fieldProblem(problem, '/keyMode')}>
            <select
              value={draft.keyMode}
              onChange={({ currentTarget }) => onChange({ keyMode: currentTarget.value })}
            >
              <option value="">keep (usual)</option>
              {MODES.slice(1).map((mode) => (
                <option key={mode}>{mode}</option>
              ))}
            </select>
          </Field>
          {isWindowed && (
            <Line {...props} name="keyWindow" label="Window" pointer="/keyWindow" placeholder="5m" />
          )}
        </div>
        <div class="fields-row">
          <Field label="Delivery" problem={fieldProblem(problem, '/delivery')}>
            <select
              value={draft.delivery}
              onChange={({ currentTarget }) => onChange({ delivery: currentTarget.value })}
            >
              <option value="">{delivery ?? 'at-least-once'} (usual)</option>
              <option>at-least-once</option>
              <option>at-most-once</option>
            </select>
          </Field>
          <Line
            {...props}
            name="maxAttempts"
            label="Attempts at most"
            pointer="/retry/maxAttempts"
            placeholder={String(retry?.maxAttempts ?? 4)}
          />
          <Line
            {...props}
            name="timeout"
            label="Timeout of an attempt"
            pointer="/timeout"
            placeholder={timeout ?? '20m'}
          />
        </div>
        <div class="fields-row">
          <Line
            {...props}
            name="backoffBase"
            label="First pause"
            pointer="/retry/backoff/base"
            placeholder={retry?.backoff?.base ?? '2s'}
          />
          <Line
            {...props}
            name="backoffFactor"
            label="Times"
            pointer="/retry/backoff/factor"
            placeholder={String(retry?.backoff?.factor ?? 2)}
          />
          <Line
            {...props}
            name="backoffMax"
            label="Up to"
            pointer="/retry/backoff/max"
            placeholder={retry?.backoff?.max ?? '10m'}
          />
          <Line
            {...props}
            name="lostAttempts"
            label="Lost attempts"
            pointer="/retry/onWorkerLost"
            placeholder={String(retry?.onWorkerLost?.maxAttempts ?? 3)}
          />
        </div>
        <div class="fields-row">
          <Line
            {...props}
            name="concurrencyKey"
            label="Concurrency key"
            pointer="/concurrencyKey"
            hint="jobs of one key run one after another"
          />
          <Field label="Must start by" problem={fieldProblem(problem, '/startBefore')}>
            <input
              type="datetime-local"
              value={draft.startBefore}
              onInput={({ currentTarget }) => onChange({ startBefore: currentTarget.value })}
            />
          </Field>
        </div>
        <Field
          label="Labels that a worker must have"
          problem={fieldProblem(problem, '/requires')}
          hint="one in each line, such as region=eu"
        >
          <textarea
            class="mono"
            rows={2}
            spellcheck={false}
            value={draft.labels}
            onInput={({ currentTarget }) => onChange({ labels: currentTarget.value })}
          />
        </Field>
        <label class="submit-check">
          <input
            type="checkbox"
            checked={draft.hold}
            onChange={({ currentTarget }) => onChange({ hold: currentTarget.checked })}
          />
          On hold until somebody releases it
        </label>
      </div>
    </details>
  );
}
