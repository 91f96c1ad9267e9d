import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { call } from '../api/client.js';
import { asProblem, type Problem } from '../api/problem.js';
import { type Action, CopyAs } from './action.js';
import { Dialog } from './dialog.js';
import { toast } from './toasts.js';

/** Forms in windows: labelled fields, and one action that is made from what was typed. */

interface FieldProps {
  readonly label: string;
  /** What may stand there. */
  readonly hint?: ComponentChildren;
  /** Where the API would say that this is wrong, such as `/rate/limit`. */
  readonly pointer?: string;
  readonly problem?: Problem | null;
  /** What is wrong with it before it is sent. */
  readonly mistake?: string | null;
  readonly children: (attributes: {
    readonly id: string;
    readonly 'aria-describedby': string;
    readonly 'aria-invalid': boolean;
  }) => ComponentChildren;
}

/** A field with its label, what may stand there, and what is wrong with it. */
export function Field({ label, hint, pointer, problem = null, mistake = null, children }: FieldProps) {
  const id = useId();
  const told = problem?.fields.filter((each) => pointer !== undefined && isAt(each.pointer, pointer)) ?? [];
  const wrong = mistake === null ? told.map(({ detail }) => detail) : [mistake];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-about`, 'aria-invalid': wrong.length > 0 })}
      <p id={`${id}-about`} class={wrong.length > 0 ? 'field-problem' : 'field-hint'}>
        {wrong.length > 0 ? wrong.join('; ') : hint}
      </p>
    </div>
  );
}

function isAt(pointer: string, field: string): boolean {
  return pointer === field || pointer.startsWith(`${field}/`);
}

interface TextFieldProps extends Omit<FieldProps, 'children'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly type?: 'text' | 'password' | 'datetime-local';
  /** Whether it is told when the typing is done, instead of with every key. */
  readonly isLazy?: boolean;
  readonly isRequired?: boolean;
  /** The id of a list of what is often typed. */
  readonly list?: string;
}

/** A field of one line. */
export function TextField(props: TextFieldProps) {
  const {
    value,
    onChange,
    placeholder = '',
    type = 'text',
    isRequired = false,
    isLazy = false,
    list,
    ...field
  } = props;
  // What is typed and not told yet: without it, a page that is drawn anew meanwhile would take it away.
  const [typed, setTyped] = useState<string | null>(null);
  type Typing = { readonly currentTarget: HTMLInputElement };
  const told = ({ currentTarget }: Typing) => {
    setTyped(null);
    onChange(currentTarget.value);
  };
  const kept = ({ currentTarget }: Typing) => setTyped(currentTarget.value);
  return (
    <Field {...field}>
      {(attributes) => {
        const all = {
          ...attributes,
          ...{ value: typed ?? value, placeholder, required: isRequired, list },
          ...{ autocomplete: 'off', spellcheck: false },
          ...(isLazy ? { onInput: kept, onChange: told } : { onInput: told }),
        };
        // Written out, because the types of elements differ by it.
        if (type === 'password') return <input {...all} type="password" />;
        if (type === 'datetime-local') return <input {...all} type="datetime-local" />;
        return <input {...all} type="text" />;
      }}
    </Field>
  );
}

interface ChoicesProps {
  readonly legend: string;
  readonly all: readonly string[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

/** Some of a few words. */
export function Choices({ legend, all, chosen, onChange }: ChoicesProps) {
  const toggle = (word: string) =>
    onChange(all.filter((each) => (each === word ? !chosen.includes(each) : chosen.includes(each))));
  return (
    <fieldset class="field">
      <legend>{legend}</legend>
      <div class="field-choices">
        {all.map((word) => (
          <label key={word}>
            <input type="checkbox" checked={chosen.includes(word)} onChange={() => toggle(word)} /> {word}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface FormDialogProps {
  readonly title: string;
  /** What the button does, made from what was typed; null while something is missing. */
  readonly action: Omit<Action, 'question' | 'undo'> | null;
  /** What stands for the body in the commands that can be copied, where it holds a secret. */
  readonly copiedBody?: unknown;
  readonly onClose: () => void;
  readonly children: (problem: Problem | null) => ComponentChildren;
}

/** A form that closes when its action is done, and stays with the reasons if it is refused. */
export function FormDialog({ title, action, copiedBody, onClose, children }: FormDialogProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!action || isBusy) return;
    setBusy(true);
    try {
      const { method, path, body, allTenants = false, done, onDone } = action;
      const answer = await call<unknown>(method, path, { allTenants, ...(body !== undefined && { body }) });
      toast({ kind: 'good', text: done });
      onDone?.(answer);
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        {children(problem)}
        {problem && (
          <p class="notice notice-bad" role="alert">
            {problem.message}
          </p>
        )}
        <div class="dialog-buttons">
          {action && <CopyAs {...action} body={copiedBody ?? action.body} />}
          <button type="button" class="button" onClick={onClose}>
            Keep as it is
          </button>
          <button type="submit" class="button button-main" disabled={!action || isBusy}>
            {action?.label ?? title}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
