import { invalid, messageOf } from '../errors.js';
import { INPUT } from '../workflow.js';

/**
 * What stands for a result that is not there yet, in the inputs of later steps. Reading a field of it makes a reference to
 * that field; in JSON it becomes a `$from` of `step.result.path`.
 */

declare const VALUE: unique symbol;

/** Something that will be a `T` when the step starts that it is given to. */
export interface Promised<T> {
  readonly [VALUE]: T;
}

/** The result of a step that has not run yet, or a field of it. */
export type Reference<T> = Promised<T> &
  (unknown extends T ? { readonly [key: string]: Reference<unknown> } : Fields<NonNullable<T>>);

type Fields<T> = T extends readonly (infer Item)[]
  ? { readonly [index: number]: Reference<Item> }
  : T extends object
    ? { readonly [Key in keyof T]: Reference<Exclude<T[Key], undefined>> }
    : unknown;

/** An input, any part of which may be the result of an earlier step. */
export type Given<T> = unknown extends T
  ? unknown
  : Promised<T> | (T extends object ? { [Key in keyof T]: Given<T[Key]> } : T);

/** Which step a reference is to, and the way from its result to the value. */
interface Origin {
  /** The workflow that is being built. */
  readonly owner: object;
  /** `input` stands for the input of the workflow. */
  readonly step: string;
  readonly path: readonly string[];
}

const ORIGIN = Symbol('origin of a reference');
const MOST_PART_LENGTH = 128;

/** A reference to the result of a step. */
export function referenceTo(origin: Origin): Reference<unknown> {
  return new Proxy({}, new Handler(origin)) as Reference<unknown>;
}

class Handler implements ProxyHandler<object> {
  readonly #origin: Origin;

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  get(_target: object, key: string | symbol): unknown {
    const { owner, step, path } = this.#origin;
    if (key === ORIGIN) return this.#origin;
    if (key === 'toJSON') return () => ({ $from: nameOf(this.#origin) });
    if (typeof key === 'symbol') throw this.#unknownYet();
    if (key === '' || key.includes('.') || key.length > MOST_PART_LENGTH) {
      const detail = `${JSON.stringify(key)} cannot be part of a reference: it must have 1 to ${MOST_PART_LENGTH} characters and no dot`;
      throw invalid([{ pointer: '/payload', detail }]);
    }
    return referenceTo({ owner, step, path: [...path, key] });
  }

  /** Spreading would give an empty object, without a word. */
  ownKeys(): never {
    throw this.#unknownYet();
  }

  #unknownYet(): Error {
    const name = nameOf(this.#origin);
    return invalid([
      {
        pointer: '/payload',
        detail: `${name} is not known before the workflow runs: it can only be passed on to another step, as it is`,
      },
    ]);
  }
}

/** What `$from` says for it; the input of a workflow has no result, it is there at once. */
function nameOf({ step, path }: Origin): string {
  return step === INPUT ? [step, ...path].join('.') : [step, 'result', ...path].join('.');
}

/** The origin of a value that is a reference, else null. */
function originOf(value: unknown): Origin | null {
  if (typeof value !== 'object' || value === null) return null;
  return (value as { [ORIGIN]?: Origin })[ORIGIN] ?? null;
}

/** Whether a value is a reference, which cannot be looked into. */
export function isReference(value: object): boolean {
  return originOf(value) !== null;
}

/** The input as JSON, and the steps whose results it refers to. */
export function writeInput(input: unknown, owner: object): { payload: unknown; steps: Set<string> } {
  const steps = new Set<string>();
  const note = (value: unknown) => {
    const origin = originOf(value);
    if (!origin) return;
    if (origin.owner !== owner) throw foreign(origin);
    steps.add(origin.step);
  };
  if (input === undefined) return { payload: undefined, steps };
  const text = stringify(input, function (this: Record<string, unknown>, key, value) {
    note(this[key]);
    return value;
  });
  return { payload: JSON.parse(text), steps };
}

function stringify(input: unknown, replacer: (this: never, key: string, value: unknown) => unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(input, replacer as (key: string, value: unknown) => unknown);
  } catch (thrown) {
    if (thrown instanceof TypeError || thrown instanceof RangeError) throw notJson(messageOf(thrown));
    throw thrown;
  }
  if (text === undefined) throw notJson(`it is a ${typeof input}`);
  return text;
}

function notJson(why: string): Error {
  return invalid([{ pointer: '/payload', detail: `cannot be written as JSON: ${why}` }]);
}

/** The error for a reference in another workflow than its own, such as one inside it, which is built with values alone. */
function foreign(origin: Origin): Error {
  const what = origin.step === INPUT ? 'the input' : 'the result of a step';
  const detail = `${nameOf(origin)} is ${what} of another workflow: only steps of that one can take it, and no workflow inside it`;
  return invalid([{ pointer: '/payload', detail }]);
}

/** The error for a step that was given to another workflow than its own. */
export function otherWorkflow(step: string): Error {
  return invalid([{ pointer: '/after', detail: `"${step}" is a step of another workflow` }]);
}
