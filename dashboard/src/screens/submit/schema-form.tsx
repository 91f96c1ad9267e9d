import { useState } from 'preact/hooks';
import { parseExactly } from '../../api/exact-json.js';
import type { Problem } from '../../api/problem.js';
import { Field, fieldProblem } from '../../parts/field.js';
import { jsonMistake, jsonText } from '../jobs/json-text.js';
import type { Shape, ShapeField } from './schema-shape.js';

interface FormProps<S extends Shape> {
  readonly shape: S;
  /** What is there; undefined if nothing is. */
  readonly value: unknown;
  /** Told the new value; undefined takes it away. */
  readonly onChange: (value: unknown) => void;
  readonly pointer: string;
  readonly problem: Problem | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** The payload of a task as its schema describes it. */
export function SchemaForm({
  shape,
  value,
  onChange,
  pointer,
  problem,
}: FormProps<Shape & { kind: 'object' }>) {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Fields;
  const set = (name: string, next: unknown) => {
    const { [name]: _, ...rest } = fields;
    onChange(next === undefined ? rest : { ...fields, [name]: next });
  };
  return (
    <div class="fields">
      {shape.fields.map((field) => (
        <SchemaField
          key={field.name}
          field={field}
          value={fields[field.name]}
          onChange={(next) => set(field.name, next)}
          pointer={`${pointer}/${field.name.replaceAll('~', '~0').replaceAll('/', '~1')}`}
          problem={problem}
        />
      ))}
    </div>
  );
}

interface SchemaFieldProps extends Omit<FormProps<Shape>, 'shape'> {
  readonly field: ShapeField;
}

function SchemaField({ field, ...props }: SchemaFieldProps) {
  const { title, hint, isRequired, shape } = field;
  const label = isRequired ? (
    <>
      {title} <span class="submit-required">required</span>
    </>
  ) : (
    title
  );
  if (shape.kind === 'object')
    return (
      <fieldset class="submit-group">
        <legend>{label}</legend>
        {hint !== undefined && <p class="field-hint">{hint}</p>}
        <SchemaForm shape={shape} {...props} />
      </fieldset>
    );
  if (shape.kind === 'json') return <JsonField label={label} hint={hint} {...props} />;
  return (
    <Field
      label={label}
      problem={fieldProblem(props.problem, props.pointer)}
      {...(hint !== undefined && { hint })}
    >
      {inputOf(field, props.value, props.onChange)}
    </Field>
  );
}

/** The input of a simple field. */
function inputOf(
  { shape, example, isRequired }: ShapeField,
  value: unknown,
  onChange: (value: unknown) => void,
) {
  const placeholder = example === undefined ? {} : { placeholder: example };
  const text = typeof value === 'string' ? value : value === undefined ? '' : jsonText(value);
  const ofText = (typed: string) => onChange(typed === '' && !isRequired ? undefined : typed);
  switch (shape.kind) {
    case 'choice':
      return <Choice values={shape.values} value={value} onChange={onChange} />;
    case 'boolean':
      return <Choice values={[true, false]} value={value} onChange={onChange} />;
    case 'number':
      return (
        <input
          type="text"
          inputMode="decimal"
          {...placeholder}
          value={text}
          onInput={({ currentTarget }) => onChange(numberOf(currentTarget.value))}
        />
      );
    case 'texts':
      return (
        <textarea
          rows={3}
          placeholder="one in each line"
          value={Array.isArray(value) ? value.join('\n') : text}
          onInput={({ currentTarget: { value: typed } }) =>
            onChange(typed === '' ? undefined : typed.split('\n'))
          }
        />
      );
    case 'text':
      return shape.isLong ? (
        <textarea
          rows={4}
          {...placeholder}
          value={text}
          onInput={({ currentTarget }) => ofText(currentTarget.value)}
        />
      ) : (
        <input
          type="text"
          {...placeholder}
          value={text}
          onInput={({ currentTarget }) => ofText(currentTarget.value)}
        />
      );
    default:
      return <input type="text" />;
  }
}

interface ChoiceProps {
  readonly id?: string;
  readonly values: readonly unknown[];
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

function Choice({ values, value, onChange, ...rest }: ChoiceProps) {
  const at = values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
  return (
    <select
      {...rest}
      value={String(at)}
      onChange={({ currentTarget }) => onChange(values[Number(currentTarget.value)])}
    >
      <option value="-1">–</option>
      {values.map((each, i) => (
        <option key={JSON.stringify(each)} value={String(i)}>
          {each === true
            ? 'yes'
            : each === false
              ? 'no'
              : typeof each === 'string'
                ? each
                : JSON.stringify(each)}
        </option>
      ))}
    </select>
  );
}

/** A number with all its digits; what is none stays text, and the API says what is wrong with it. */
function numberOf(typed: string): unknown {
  const text = typed.trim();
  if (text === '') return undefined;
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? parseExactly(text) : typed;
}

interface JsonFieldProps extends Omit<SchemaFieldProps, 'field'> {
  readonly label: Parameters<typeof Field>[0]['label'];
  readonly hint: string | undefined;
}

/** A part of the payload that is edited as JSON. */
function JsonField({ label, hint, value, onChange, pointer, problem }: JsonFieldProps) {
  const [text, setText] = useState(value === undefined ? '' : jsonText(value));
  const mistake = text.trim() === '' ? null : jsonMistake(text);
  const change = (typed: string) => {
    setText(typed);
    if (typed.trim() === '') onChange(undefined);
    else if (jsonMistake(typed) === null) onChange(parseExactly(typed));
  };
  return (
    <Field label={label} problem={mistake ?? fieldProblem(problem, pointer)} hint={hint ?? 'JSON'}>
      <textarea
        class="mono"
        rows={4}
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
    </Field>
  );
}
