import { type ComponentChildren, cloneElement, type VNode } from 'preact';
import { useId } from 'preact/hooks';
import type { Problem } from '../api/problem.js';

interface FieldProps {
  readonly label: ComponentChildren;
  /** What is wrong with what stands in it. */
  readonly problem?: string | null;
  readonly hint?: ComponentChildren;
  /** The input, select or textarea. */
  readonly children: VNode<{ id?: string }>;
}

/** A field of a form with its label, a hint, and what is wrong with it. */
export function Field({ label, problem = null, hint, children }: FieldProps) {
  const id = useId();
  const notes = [problem !== null && `${id}-problem`, hint !== undefined && `${id}-hint`].filter(Boolean);
  return (
    <div class={problem === null ? 'field' : 'field field-wrong'}>
      <label for={id}>{label}</label>
      {cloneElement(children as VNode<Record<string, unknown>>, {
        id,
        'aria-invalid': problem !== null,
        ...(notes.length > 0 && { 'aria-describedby': notes.join(' ') }),
      })}
      {problem !== null && (
        <p id={`${id}-problem`} class="field-problem" role="alert">
          {problem}
        </p>
      )}
      {hint !== undefined && (
        <p id={`${id}-hint`} class="field-hint">
          {hint}
        </p>
      )}
    </div>
  );
}

/** What the API says about one field of the body, or about something inside it; not what has a field of its own there. */
export function fieldProblem(
  problem: Problem | null,
  pointer: string,
  others: readonly string[] = [],
): string | null {
  const isWithin = (at: string, whole: string) => at === whole || at.startsWith(`${whole}/`);
  const found = (problem?.fields ?? []).filter(
    (each) => isWithin(each.pointer, pointer) && !others.some((other) => isWithin(each.pointer, other)),
  );
  if (found.length === 0) return null;
  return found.map((each) => `${each.pointer.slice(pointer.length)} ${each.detail}`.trim()).join('; ');
}
