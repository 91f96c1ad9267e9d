import type { TSchema } from 'typebox';
import { type FieldError, MOST_ERRORS, pointerStep } from '../errors.js';
import { addAll } from '../long-lists.js';
import { nearestName } from '../nearest-name.js';

/**
 * Says in plain words what a schema finds wrong with a value. It knows the part of JSON Schema that the
 * schemas beside it use; a property test holds it against the compiled check. Nothing here is on the path of
 * a good request.
 */

interface Rules {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rules[];
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Rules;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Rules>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Rules | boolean;
  readonly propertyNames?: Rules;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly 'x-expected'?: string;
  readonly '~refine'?: readonly { check(value: unknown): boolean }[];
}

/** Whether a value has fields of its own. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Adds everything that is wrong with the value to the errors, which may hold those of other parts of the input. The walk
 * ends when there are more errors than are told.
 */
export function explain(
  schema: TSchema,
  value: unknown,
  pointer = '',
  errors: FieldError[] = [],
): readonly FieldError[] {
  look(schema as Rules, value, pointer, errors);
  return errors;
}

function look(rules: Rules, value: unknown, pointer: string, errors: FieldError[]): void {
  if (errors.length > MOST_ERRORS) return;
  if (rules.anyOf) lookAtChoice(rules, value, pointer, errors);
  else if (rules.enum) {
    if (!rules.enum.includes(value)) errors.push({ pointer, detail: oneOf(rules.enum) });
  } else if ('const' in rules) {
    if (rules.const !== value) errors.push({ pointer, detail: oneOf([rules.const]) });
  } else if (rules.type === 'object') lookAtObject(rules, value, pointer, errors);
  else if (rules.type === 'array') lookAtArray(rules, value, pointer, errors);
  else if (!fits(rules, value)) errors.push({ pointer, detail: expectation(rules, value) });
}

function lookAtChoice(rules: Rules, value: unknown, pointer: string, errors: FieldError[]): void {
  const choices = rules.anyOf!;
  const tag = Object.entries(choices[0]?.properties ?? {}).find(([, field]) => 'const' in field)?.[0];
  if (tag === undefined) lookAtEachChoice(rules, value, pointer, errors);
  else lookAtTagged(choices, tag, value, pointer, errors);
}

/** A choice between objects is made by the one field that has another constant in each of them. */
function lookAtTagged(
  choices: readonly Rules[],
  tag: string,
  value: unknown,
  pointer: string,
  errors: FieldError[],
): void {
  if (!isPlainObject(value)) {
    errors.push({ pointer, detail: 'must be an object' });
    return;
  }
  const chosen = choices.find((choice) => choice.properties?.[tag]?.const === value[tag]);
  if (chosen) lookAtObject(chosen, value, pointer, errors);
  else {
    const known = choices.map((choice) => choice.properties?.[tag]?.const);
    const detail = Object.hasOwn(value, tag) ? oneOf(known) : 'is required';
    errors.push({ pointer: pointer + pointerStep(tag), detail });
  }
}

/** Where no choice fits: an object is taken for the one object among them, anything else for the first choice. */
function lookAtEachChoice(rules: Rules, value: unknown, pointer: string, errors: FieldError[]): void {
  const choices = rules.anyOf!;
  const attempts = choices.map((choice) => {
    const found: FieldError[] = [];
    look(choice, value, pointer, found);
    return found;
  });
  if (attempts.some((found) => found.length === 0)) return;
  const object = isPlainObject(value) ? choices.findIndex(({ type }) => type === 'object') : -1;
  const expected = rules['x-expected'];
  if (object < 0 && expected) errors.push({ pointer, detail: `must be ${expected}` });
  else addAll(errors, attempts[Math.max(object, 0)]!);
}

function lookAtObject(rules: Rules, value: unknown, pointer: string, errors: FieldError[]): void {
  if (!isPlainObject(value)) {
    errors.push({ pointer, detail: 'must be an object' });
    return;
  }
  const names = Object.keys(value);
  if (names.length > (rules.maxProperties ?? Number.POSITIVE_INFINITY)) {
    errors.push({ pointer, detail: `must have at most ${rules.maxProperties} entries` });
    return;
  }
  if (names.length < (rules.minProperties ?? 0))
    errors.push({ pointer, detail: 'must have at least one field' });
  for (const name of rules.required ?? []) {
    if (!Object.hasOwn(value, name))
      errors.push({ pointer: pointer + pointerStep(name), detail: 'is required' });
  }
  for (const name of names) {
    if (errors.length > MOST_ERRORS) return;
    const at = pointer + pointerStep(name);
    if (rules.propertyNames && !fits(rules.propertyNames, name)) {
      errors.push({ pointer: at, detail: `the name ${expectation(rules.propertyNames, name)}` });
    }
    const known = rules.properties && Object.hasOwn(rules.properties, name) && rules.properties[name];
    if (known) lookAtField(rules, name, known, value[name], at, errors);
    else if (rules.additionalProperties === false)
      errors.push({ pointer: at, detail: unknownField(rules, name) });
    else if (typeof rules.additionalProperties === 'object') {
      look(rules.additionalProperties, value[name], at, errors);
    }
  }
}

function unknownField({ properties = {} }: Rules, name: string): string {
  const meant = nearestName(name, Object.keys(properties));
  return `is not a known field${meant === undefined ? '' : `; did you mean "${meant}"?`}`;
}

/** A field that may be absent may also be undefined: a program that embeds a node can write it so. */
function lookAtField(
  owner: Rules,
  name: string,
  rules: Rules,
  value: unknown,
  pointer: string,
  errors: FieldError[],
): void {
  if (value === undefined && !owner.required?.includes(name)) return;
  look(rules, value, pointer, errors);
}

function lookAtArray(rules: Rules, value: unknown, pointer: string, errors: FieldError[]): void {
  const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = rules;
  if (!Array.isArray(value)) errors.push({ pointer, detail: 'must be an array' });
  else if (value.length < minItems) errors.push({ pointer, detail: `must have at least ${minItems} entry` });
  else if (value.length > maxItems) errors.push({ pointer, detail: `must have at most ${maxItems} entries` });
  else if (items) {
    for (let i = 0; i < value.length && errors.length <= MOST_ERRORS; i++) {
      look(items, value[i], `${pointer}/${i}`, errors);
    }
  }
}

/** Whether a value that is neither object nor array keeps all rules. */
function fits(rules: Rules, value: unknown): boolean {
  if (rules.type === undefined) return true;
  if (!hasType(rules.type, value)) return false;
  if (typeof value === 'string') {
    if (rules.maxLength !== undefined && value.length > rules.maxLength) return false;
    if (rules.pattern !== undefined && !new RegExp(rules.pattern, 'u').test(value)) return false;
  }
  if (typeof value === 'number') {
    if (rules.minimum !== undefined && value < rules.minimum) return false;
    if (rules.maximum !== undefined && value > rules.maximum) return false;
  }
  return (rules['~refine'] ?? []).every((refinement) => refinement.check(value));
}

function hasType(type: string | readonly string[], value: unknown): boolean {
  if (typeof type !== 'string') return type.some((one) => hasType(one, value));
  if (type === 'null') return value === null;
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return Number.isFinite(value);
  return typeof value === type;
}

function expectation(rules: Rules, value: unknown): string {
  const { type, minimum, maximum } = rules;
  if (rules['x-expected']) return `must be ${rules['x-expected']}`;
  if (type === 'boolean') return 'must be true or false';
  if (type === 'null') return 'must be null';
  if (type === 'string') return 'must be text';
  const kind = type === 'integer' ? 'a whole number' : 'a number';
  if (minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
    return `must be ${kind} from ${minimum} to ${maximum}`;
  }
  if (minimum !== undefined && typeof value === 'number' && value < minimum) {
    return `must be ${kind} of at least ${minimum}`;
  }
  return `must be ${kind}`;
}

function oneOf(values: readonly unknown[]): string {
  const words = values.map((value) => JSON.stringify(value));
  return words.length === 1 ? `must be ${words[0]}` : `must be one of ${words.join(', ')}`;
}
