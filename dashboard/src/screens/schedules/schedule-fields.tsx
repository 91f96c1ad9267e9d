import type { Page } from '../../../../src/core/wire.js';
import type { ListedWorkflowDefinition } from '../../../../src/core/workflow.js';
import type { Problem } from '../../api/problem.js';
import { useResource } from '../../api/resource.js';
import { Choice } from '../../parts/choice.js';
import { Field, TextField } from '../../parts/form.js';
import { ProgramFields } from '../submit/program-fields.js';
import { useExpressionWords } from './expression-words.js';
import { type Draft, mistakesOf } from './schedule-draft.js';

/** The fields of a schedule. */

interface FieldsProps {
  readonly draft: Draft;
  readonly onChange: (change: Partial<Draft>) => void;
  /** What the API says is wrong. */
  readonly problem: Problem | null;
}

/** The field of a draft that is text, with its place in the body. */
function useText({ draft, onChange, problem }: FieldsProps) {
  return (name: keyof Draft, pointer = `/${name}`) => ({
    ...{ value: draft[name], onChange: (text: string) => onChange({ [name]: text }) },
    ...{ problem, pointer },
  });
}

const RUNS = [
  ['task', 'A task'],
  ['target', 'A call to a URL'],
  ['program', 'A program'],
  ['workflow', 'A workflow'],
  ['batch', 'A batch'],
] as const;
const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD'];

interface RunsFieldsProps extends FieldsProps {
  /** Why a call or a program cannot be changed here. */
  readonly fixedTarget: string | null;
}

/** What an occurrence runs, and with what. */
export function RunsFields({ fixedTarget, ...props }: RunsFieldsProps) {
  const { draft, onChange } = props;
  const text = useText(props);
  return (
    <>
      <Choice
        label="What it runs"
        options={RUNS}
        chosen={draft.runs}
        onChoose={(runs) => onChange({ runs })}
      />
      {draft.runs === 'task' && (
        <TextField
          label="Task"
          hint="The handler of that name, or a task that was defined"
          isRequired
          {...text('task')}
        />
      )}
      {draft.runs === 'target' &&
        (fixedTarget === null ? (
          <div class="schedule-call">
            <Field label="Method">
              {(attributes) => (
                <select
                  {...attributes}
                  value={draft.method}
                  onChange={({ currentTarget }) => onChange({ method: currentTarget.value })}
                >
                  {METHODS.map((method) => (
                    <option key={method}>{method}</option>
                  ))}
                </select>
              )}
            </Field>
            <TextField
              label="URL"
              isRequired
              placeholder="https://example.com/hook"
              {...text('url', '/target')}
            />
          </div>
        ) : (
          <p class="soft">{fixedTarget}</p>
        ))}
      {draft.runs === 'program' &&
        (fixedTarget === null ? <ProgramFields {...props} /> : <p class="soft">{fixedTarget}</p>)}
      {draft.runs === 'workflow' && <WorkflowField {...props} />}
      {draft.runs === 'batch' ? (
        <JsonField {...props} name="batch" label="Batch" hint="Its jobs start together, or not at all" />
      ) : (
        <JsonField
          {...props}
          name="payload"
          label={draft.runs === 'workflow' ? 'Input' : 'Payload'}
          hint="JSON; empty for none"
        />
      )}
    </>
  );
}

function WorkflowField(props: FieldsProps) {
  const text = useText(props);
  const known = useResource<Page<ListedWorkflowDefinition>>('/v1/workflow-definitions?limit=1000');
  const names = known.data.value?.data.map(({ name }) => name) ?? [];
  return (
    <>
      <TextField
        label="Workflow"
        hint={
          names.length === 0 ? (
            <>
              The name of a definition; <code>punctual workflow define</code> makes one
            </>
          ) : (
            'The name of a definition; each occurrence starts its newest version'
          )
        }
        isRequired
        list="schedule-workflows"
        {...text('workflow')}
      />
      <datalist id="schedule-workflows">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

interface JsonFieldProps extends FieldsProps {
  readonly name: 'payload' | 'batch';
  readonly label: string;
  readonly hint: string;
}

function JsonField({ draft, onChange, problem, name, label, hint }: JsonFieldProps) {
  const mistake = mistakesOf(draft)[`/${name}`];
  return (
    <Field label={label} hint={hint} pointer={`/${name}`} problem={problem} mistake={mistake ?? null}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="mono"
          rows={name === 'batch' ? 7 : 3}
          spellcheck={false}
          value={draft[name]}
          onInput={({ currentTarget }) => onChange({ [name]: currentTarget.value })}
        />
      )}
    </Field>
  );
}

const DUE = [
  ['cron', 'By a cron expression'],
  ['every', 'Again and again'],
  ['at', 'Once'],
] as const;

/** When it is due. */
export function DueFields(props: FieldsProps) {
  const { draft, onChange } = props;
  const text = useText(props);
  const words = useExpressionWords(draft.due === 'cron' ? draft.cron : undefined);
  return (
    <>
      <Choice label="Due" options={DUE} chosen={draft.due} onChoose={(due) => onChange({ due })} />
      {draft.due === 'cron' && (
        <div class="field-pair">
          <TextField
            label="Expression"
            hint={words ?? 'Minute, hour, day, month, weekday'}
            isRequired
            {...text('cron')}
          />
          <TextField label="Time zone" hint="Such as Europe/Berlin" {...text('timezone')} />
        </div>
      )}
      {draft.due === 'every' && (
        <TextField label="Every" hint="Such as 15m or 6h" isRequired {...text('every')} />
      )}
      {draft.due === 'at' && (
        <TextField label="At" hint="In your time zone" type="datetime-local" isRequired {...text('at')} />
      )}
    </>
  );
}

const OVERLAPS = ['allow', 'skip', 'queue', 'cancel-previous'];

/** What is mostly as usual. */
export function MoreFields(props: FieldsProps) {
  const { draft, onChange } = props;
  const text = useText(props);
  const isOfJob = draft.runs !== 'workflow' && draft.runs !== 'batch';
  return (
    <details>
      <summary>Overlap, downtime, jitter, queue</summary>
      <div class="form">
        <div class="field-pair">
          <Field label="If the one before still runs" pointer="/overlap" problem={props.problem}>
            {(attributes) => (
              <select
                {...attributes}
                value={draft.overlap}
                onChange={({ currentTarget }) => onChange({ overlap: currentTarget.value })}
              >
                <option value="">as usual: allow</option>
                {OVERLAPS.map((overlap) => (
                  <option key={overlap}>{overlap}</option>
                ))}
              </select>
            )}
          </Field>
          <TextField label="After downtime" hint="none, latest, all, or such as 6h" {...text('catchUp')} />
        </div>
        <div class="field-pair">
          <TextField label="Not before" hint="In your time zone" type="datetime-local" {...text('startAt')} />
          <TextField label="Not after" hint="In your time zone" type="datetime-local" {...text('endAt')} />
        </div>
        <div class="field-pair">
          <TextField label="Jitter" hint="Such as 30s: spreads the starts" {...text('jitter')} />
          {isOfJob && <TextField label="Queue" hint="Empty for default" {...text('queue')} />}
        </div>
        {isOfJob && (
          <div class="field-pair">
            <TextField label="Priority" hint="1 to 9, 9 first" {...text('priority')} />
          </div>
        )}
      </div>
    </details>
  );
}
