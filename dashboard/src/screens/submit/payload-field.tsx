import { useState } from 'preact/hooks';
import { parseExactly } from '../../api/exact-json.js';
import type { Problem } from '../../api/problem.js';
import { Choice } from '../../parts/choice.js';
import { Field, fieldProblem } from '../../parts/field.js';
import { jsonMistake, jsonText } from '../jobs/json-text.js';
import { SchemaForm } from './schema-form.js';
import { shapeOf } from './schema-shape.js';

interface PayloadFieldProps {
  readonly text: string;
  readonly onChange: (text: string) => void;
  /** The schema of the task, if it has one. */
  readonly schema: unknown;
  readonly problem: Problem | null;
  readonly label: string;
}

const WAYS = [
  ['form', 'Form'],
  ['json', 'JSON'],
] as const;

/** The payload: a form if the task says what it looks like, and always as JSON. */
export function PayloadField({ text, onChange, schema, problem, label }: PayloadFieldProps) {
  const [wantsJson, setWantsJson] = useState(false);
  const shape = schema === undefined ? null : shapeOf(schema);
  const value = objectOf(text);
  const isForm = shape !== null && !wantsJson && value !== null;
  const mistake = text.trim() === '' ? null : jsonMistake(text);
  const format = () => {
    if (mistake === null && text.trim() !== '') onChange(jsonText(parseExactly(text)));
  };
  return (
    <div class="submit-payload">
      {shape !== null && value !== null && (
        <Choice
          label="How to write the payload"
          options={WAYS}
          chosen={isForm ? 'form' : 'json'}
          onChoose={(way) => setWantsJson(way === 'json')}
        />
      )}
      {isForm ? (
        <>
          <SchemaForm
            shape={shape}
            value={value}
            onChange={(next) => onChange(jsonText(next))}
            pointer="/payload"
            problem={problem}
          />
          <p class="field-problem" role="alert">
            {problem?.fields.find(({ pointer }) => pointer === '/payload')?.detail}
          </p>
        </>
      ) : (
        <Field label={label} problem={mistake ?? fieldProblem(problem, '/payload')}>
          <textarea
            class="mono"
            rows={10}
            spellcheck={false}
            placeholder={'{ "to": "ada@example.com" }'}
            value={text}
            onInput={({ currentTarget }) => onChange(currentTarget.value)}
            onBlur={format}
          />
        </Field>
      )}
    </div>
  );
}

/** The object that a text is; an empty one for no text, null for anything that no form shows. */
function objectOf(text: string): object | null {
  if (text.trim() === '') return {};
  if (jsonMistake(text) !== null) return null;
  const value = parseExactly(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
}
