import { type FieldError, MOST_ERRORS, pointerStep } from '../errors.js';
import { JsonText } from '../json-reader.js';
import { inSlices } from '../time-slice.js';
import { INPUT, MOST_EDGES, MOST_FROM, MOST_STEPS, type RunIf } from '../workflow.js';
import {
  type FoundReferences,
  isToInput,
  mayRefer,
  nameOf,
  pointerTo,
  type Reference,
  searchReferences,
} from './references.js';

/**
 * Whether the steps of a workflow are a graph that can run. It is checked without recursion, because a graph may be ten
 * thousand steps deep, and with pauses after each part that is linear in steps and edges: the event loop must not wait for
 * all of it. A list of mistakes is cut like every other one.
 */

/** What a step says that matters for the graph. Other fields are checked elsewhere. */
export interface GraphStep {
  readonly after?: readonly string[];
  readonly runIf?: RunIf;
  /** Its references are checked if it was read as text. */
  readonly payload?: unknown;
  /** Where the payload stands in the step as it was sent; default `/payload`. */
  readonly payloadAt?: string;
  /** The references in its payload, if they have been found already. */
  readonly references?: readonly Reference[];
}

/** A step in its place; `parents` and `children` are indexes into the list of steps. */
export interface PlacedStep {
  readonly name: string;
  /** In the order of `after`. */
  readonly parents: readonly number[];
  readonly children: readonly number[];
  /** The references in its payload. */
  readonly references: readonly Reference[];
}

/** The steps of a graph, every step behind its parents, or what is wrong with them. */
export type CheckedGraph =
  | { readonly steps: readonly PlacedStep[]; readonly errors?: undefined }
  | { readonly steps?: undefined; readonly errors: readonly FieldError[] };

/** Steps that exist when others are added, by their names: whether they have ended. */
export type KnownSteps = ReadonlyMap<string, { readonly hasEnded: boolean }>;

const NO_STEPS: KnownSteps = new Map();

/** Names of a cycle that an error spells out; the others in the middle are counted. */
const MOST_NAMES = 20;

/**
 * Checks the graph of a workflow whose steps have the right form. Steps that are added to a workflow may also name those
 * that are known, which come first in the answer, and refer to the results of known ones that have ended.
 */
export function checkGraph(
  added: Readonly<Record<string, GraphStep>>,
  pointer = '/jobs',
  known: KnownSteps = NO_STEPS,
): Promise<CheckedGraph> {
  return inSlices(check(added, pointer, known));
}

function* check(
  added: Readonly<Record<string, GraphStep>>,
  pointer: string,
  known: KnownSteps,
): Generator<void, CheckedGraph, void> {
  const own = Object.keys(added);
  const tooMany = sizeError(own.length, edgesIn(added, own));
  if (tooMany) return { errors: [{ pointer, detail: tooMany }] };
  const jobs = known.size === 0 ? added : withKnown(added, known);
  const names = Object.keys(jobs);
  const errors: FieldError[] = [];
  if (Object.hasOwn(jobs, INPUT))
    add(
      errors,
      pointer + pointerStep(INPUT),
      `"${INPUT}" is the input of the workflow: call the step otherwise`,
    );
  const parents = readParents(jobs, names, pointer, errors);
  refuseIdle(jobs, names, pointer, errors);
  if (errors.length > 0) return { errors };
  yield;
  const children = turned(parents);
  yield;
  const order = topologicalOrder(parents, children);
  if (order.length < names.length) return { errors: findCycles(names, parents, order, pointer) };
  yield;
  const references = yield* readReferences(jobs, names, pointer, errors);
  const graph = { jobs, names, parents, order, references };
  yield* checkAncestors(graph, pointer, errors, known);
  return errors.length > 0 ? { errors } : { steps: placed(graph, children) };
}

/** A known step waits for none of those that are added. */
function withKnown(
  added: Readonly<Record<string, GraphStep>>,
  known: KnownSteps,
): Readonly<Record<string, GraphStep>> {
  return { ...Object.fromEntries([...known.keys()].map((name) => [name, {}])), ...added };
}

function edgesIn(jobs: Readonly<Record<string, GraphStep>>, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (jobs[name]!.after?.length ?? 0), 0);
}

function sizeError(steps: number, edges: number): string | null {
  if (steps === 0) return 'must have at least one step';
  if (steps > MOST_STEPS) return `must have at most ${MOST_STEPS} steps`;
  return edges > MOST_EDGES ? `must have at most ${MOST_EDGES} entries of "after" in all` : null;
}

/** The parents of each step, by index. */
function readParents(
  jobs: Readonly<Record<string, GraphStep>>,
  names: readonly string[],
  pointer: string,
  errors: FieldError[],
): number[][] {
  const indexOf = new Map(names.map((name, index) => [name, index]));
  return names.map((name) => {
    const { after = [] } = jobs[name]!;
    const only = after.length === 1 ? indexOf.get(after[0]!) : undefined;
    if (only !== undefined) return [only];
    const parents = new Set<number>();
    for (const [i, parent] of after.entries()) {
      const index = indexOf.get(parent);
      const mistake =
        index === undefined
          ? `there is no step "${parent}"`
          : parents.has(index)
            ? `names "${parent}" a second time`
            : null;
      if (index !== undefined) parents.add(index);
      if (mistake) add(errors, `${pointer}${pointerStep(name)}/after/${i}`, mistake);
    }
    return [...parents];
  });
}

/** A step that runs when any parent has done something never does so without a parent. */
function refuseIdle(
  jobs: Readonly<Record<string, GraphStep>>,
  names: readonly string[],
  pointer: string,
  errors: FieldError[],
): void {
  for (const name of names) {
    const { after = [], runIf } = jobs[name]!;
    if (after.length > 0 || (runIf !== 'any-failed' && runIf !== 'any-succeeded')) continue;
    add(errors, `${pointer}${pointerStep(name)}/runIf`, `"${runIf}" never runs without a step in "after"`);
  }
}

/** Nobody reads more errors than are told. */
function add(errors: FieldError[], pointer: string, detail: string): void {
  if (errors.length <= MOST_ERRORS) errors.push({ pointer, detail });
}

/** The same edges seen from their other ends. Most steps have few children, and an empty list makes room for many. */
function turned(parents: readonly (readonly number[])[]): (readonly number[])[] {
  const children = new Array<number[] | undefined>(parents.length);
  for (let child = 0; child < parents.length; child++) {
    for (const parent of parents[child]!) {
      const known = children[parent];
      if (known) known.push(child);
      else children[parent] = [child];
    }
  }
  return Array.from(children, (theirs) => theirs ?? NOBODY);
}

const NOBODY: readonly number[] = [];

/** The steps with every step behind its parents; those on a cycle or behind one are left out. */
function topologicalOrder(
  parents: readonly (readonly number[])[],
  children: readonly (readonly number[])[],
): number[] {
  const left = parents.map(({ length }) => length);
  const order = [...left.keys()].filter((step) => left[step] === 0);
  for (let i = 0; i < order.length; i++) {
    for (const child of children[order[i]!]!) {
      left[child]! -= 1;
      if (left[child] === 0) order.push(child);
    }
  }
  return order;
}

/**
 * Names cycles that have no step in common. Whoever walks from parent to parent among the steps that have no place in the
 * order comes to a step a second time, since each of them has such a parent.
 */
function findCycles(
  names: readonly string[],
  parents: readonly (readonly number[])[],
  order: readonly number[],
  pointer: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const isPlaced = new Uint8Array(names.length);
  for (const step of order) isPlaced[step] = 1;
  /** The walk that came to a step, and which step of that walk it was. */
  const walkOf = new Int32Array(names.length);
  const positionOf = new Int32Array(names.length);
  for (let first = 0, walk = 1; first < names.length && errors.length <= MOST_ERRORS; first++, walk++) {
    const way: number[] = [];
    let at = first;
    while (!isPlaced[at] && walkOf[at] === 0) {
      walkOf[at] = walk;
      positionOf[at] = way.length;
      way.push(at);
      at = parents[at]!.find((parent) => !isPlaced[parent])!;
    }
    // A walk that ends on an earlier one adds nothing: the cycle there is known.
    if (isPlaced[at] || walkOf[at] !== walk) continue;
    const cycle = [at, ...way.slice(positionOf[at]! + 1).reverse()];
    const place = parents[at]!.indexOf(cycle[cycle.length - 1]!);
    errors.push({
      pointer: `${pointer}${pointerStep(names[at]!)}/after/${place}`,
      detail: `steps wait for each other: ${spell(cycle, names)}`,
    });
  }
  return errors;
}

/** A cycle from parent to child, back to where it began. */
function spell(cycle: readonly number[], names: readonly string[]): string {
  const all = [...cycle, cycle[0]!].map((step) => names[step]!);
  if (all.length <= MOST_NAMES) return all.join(' → ');
  const half = MOST_NAMES / 2;
  const told = [...all.slice(0, half), `… ${all.length - MOST_NAMES} more …`, ...all.slice(-half)];
  return told.join(' → ');
}

/** The references of each step, as far as they can be read. The payloads must not be too large. */
export function* readReferences(
  jobs: Readonly<Record<string, GraphStep>>,
  names: readonly string[],
  pointer: string,
  errors: FieldError[],
): Generator<void, (readonly Reference[])[], void> {
  const all: (readonly Reference[])[] = [];
  let count = 0;
  for (const name of names) {
    yield;
    const found = yield* referencesOf(jobs[name]!);
    for (const error of found.errors)
      add(errors, pointerToPayload(jobs, name, pointer) + error.pointer, error.detail);
    if (errors.length > MOST_ERRORS) break;
    count += found.references.length;
    if (count > MOST_FROM) {
      add(errors, pointer, `must have at most ${MOST_FROM} "$from" in all payloads`);
      break;
    }
    all.push(found.references);
  }
  while (all.length < names.length) all.push(NONE);
  return all;
}

/** Where the payload of a step stands in what was sent. */
export function pointerToPayload(
  jobs: Readonly<Record<string, GraphStep>>,
  name: string,
  pointer: string,
): string {
  return `${pointer}${pointerStep(name)}${jobs[name]!.payloadAt ?? '/payload'}`;
}

function* referencesOf({ payload, references }: GraphStep): Generator<void, FoundReferences, void> {
  if (references) return { references, errors: [] };
  return payload instanceof JsonText && mayRefer(payload) ? yield* searchReferences(payload) : NOTHING;
}

const NONE: readonly Reference[] = [];
const NOTHING: FoundReferences = { references: NONE, errors: [] };

/** A reference to a step that is no parent; whether it is an ancestor takes a look at the whole graph. */
interface FarReference {
  readonly step: number;
  readonly source: number;
  readonly reference: Reference;
}

interface Edges {
  readonly jobs: Readonly<Record<string, GraphStep>>;
  readonly names: readonly string[];
  readonly parents: readonly (readonly number[])[];
  readonly order: readonly number[];
  readonly references: readonly (readonly Reference[])[];
}

/** Each reference must be to an ancestor, whose result is there when the step is released. */
function* checkAncestors(
  graph: Edges,
  pointer: string,
  errors: FieldError[],
  known: KnownSteps,
): Generator<void, void, void> {
  const { jobs, names } = graph;
  const wrong = (step: number, reference: Reference, why: string) => {
    const at = `${pointerToPayload(jobs, names[step]!, pointer)}${pointerTo(reference.place)}/$from`;
    add(errors, at, `"${nameOf(reference)}" ${why}`);
  };
  const far = yield* farReferences(graph, (step, reference) =>
    wrong(step, reference, `names a step that does not exist`),
  );
  const open = known.size === 0 ? far : far.filter(({ source }) => !known.get(names[source]!)?.hasEnded);
  yield* findWithoutWay(graph, open, ({ step, source, reference }) => {
    const why =
      step === source ? 'is the step itself' : `is not among the steps that "${names[step]}" waits for`;
    wrong(step, reference, why);
    return errors.length <= MOST_ERRORS;
  });
}

function* farReferences(
  { names, parents, references }: Edges,
  unknown: (step: number, reference: Reference) => void,
): Generator<void, FarReference[], void> {
  const indexOf = new Map(names.map((name, index) => [name, index]));
  const far: FarReference[] = [];
  for (const [step, theirs] of references.entries()) {
    if (theirs.length === 0) continue;
    yield;
    const known = new Set(parents[step]);
    for (const reference of theirs) {
      if (isToInput(reference)) continue;
      const source = indexOf.get(reference.step);
      if (source === undefined) unknown(step, reference);
      else if (!known.has(source)) {
        known.add(source);
        far.push({ step, source, reference });
      }
    }
  }
  return far;
}

/** How many sources one walk over the graph follows: the bits of an integer. */
const SOURCES_AT_ONCE = 32;

/** Tells of references whose source is no ancestor, for as long as the answer is true. */
function* findWithoutWay(
  { names, parents, order }: Edges,
  far: readonly FarReference[],
  tell: (reference: FarReference) => boolean,
): Generator<void, void, void> {
  const bySource = new Map<number, FarReference[]>();
  for (const each of far) {
    const same = bySource.get(each.source);
    if (same) same.push(each);
    else bySource.set(each.source, [each]);
  }
  const sources = [...bySource.keys()];
  for (let from = 0; from < sources.length; from += SOURCES_AT_ONCE) {
    yield;
    const some = sources.slice(from, from + SOURCES_AT_ONCE);
    const bitOf = new Int32Array(names.length);
    for (const [i, source] of some.entries()) bitOf[source] = 1 << i;
    const reached = new Int32Array(names.length);
    for (const step of order) {
      let bits = 0;
      for (const parent of parents[step]!) bits |= reached[parent]! | bitOf[parent]!;
      reached[step] = bits;
    }
    for (const source of some) {
      for (const each of bySource.get(source)!) {
        if ((reached[each.step]! & bitOf[source]!) === 0 && !tell(each)) return;
      }
    }
  }
}

/** The steps in their order, with indexes into it. */
function placed(
  { names, parents, order, references }: Edges,
  children: readonly (readonly number[])[],
): PlacedStep[] {
  const placeOf = new Int32Array(order.length);
  for (const [place, step] of order.entries()) placeOf[step] = place;
  // Steps are mostly sent in such an order.
  const isAsSent = order.every((step, place) => step === place);
  const places = (steps: readonly number[]) => (isAsSent ? steps : steps.map((step) => placeOf[step]!));
  return order.map((step) => ({
    name: names[step]!,
    parents: places(parents[step]!),
    children: places(children[step]!),
    references: references[step]!,
  }));
}
