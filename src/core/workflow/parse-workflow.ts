import { type FieldError, invalid, MOST_ERRORS, PunctualError, pointerStep } from '../errors.js';
import { JsonText, readLargeJsonText } from '../json-reader.js';
import { isPlainObject } from '../schemas/explain.js';
import { readFields, validate } from '../schemas/validate.js';
import {
  InnerEnvelope,
  WorkflowDefinitionEnvelope,
  WorkflowEnvelope,
  WorkflowStart,
  WorkflowStep,
} from '../schemas/workflow.js';
import {
  type JobDefinition,
  mustFit,
  type ParsedSubmission,
  parseSubmission,
  parseSubmissions,
  type SubmissionContext,
} from '../submission.js';
import { inSlices, TimeSlice } from '../time-slice.js';
import {
  type FailurePolicy,
  MOST_DEPTH,
  MOST_STEPS,
  type RunIf,
  type RunningPolicy,
  type WorkflowStep as Step,
  WORKFLOW_DEFAULTS,
} from '../workflow.js';
import { checkGraph, type GraphStep, type PlacedStep, pointerToPayload, readReferences } from './graph.js';
import { mustFitInput, outlineInput, putInput } from './input.js';
import { isToInput, nameOf, pointerTo, searchReferences } from './references.js';

/** From what a user wrote to a workflow that can be stored. */

/** A step that can be stored. */
export interface ParsedStep extends ParsedSubmission {
  readonly name: string;
  /** Indexes into the steps. */
  readonly parents: readonly number[];
  readonly runIf: RunIf;
  /** How long after its release it is due. */
  readonly delayMs: number;
  readonly wait: NonNullable<Step['wait']> | null;
  /** The workflow that it starts, if it runs no job. */
  readonly inner: ParsedInner | null;
  /** Whether its payload refers to results of other steps. */
  readonly refers: boolean;
}

/** A workflow that is a step of another one. */
export interface ParsedInner {
  /** As JSON: it is read again when the step is released. */
  readonly text: string;
  /** Its steps, and those of the workflows inside it. */
  readonly steps: readonly ParsedStep[];
  /** Where each of them stands in this workflow. */
  readonly pointers: readonly string[];
  /** How many workflows are inside each other, itself included. */
  readonly depth: number;
}

/** A workflow that can be stored; every step is behind its parents. */
export interface ParsedWorkflow {
  readonly name: string;
  readonly key: string | null;
  /** The workflow that it repeats. */
  readonly rerunOf?: string;
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  readonly steps: readonly ParsedStep[];
}

/** What a graph says: the steps as they were sent, and what failures mean. */
export interface GraphForm {
  readonly onFailure?: FailurePolicy;
  readonly running?: RunningPolicy;
  readonly jobs: Readonly<Record<string, unknown>>;
}

/** A step as it was sent, and where its payload was found if not in `payload`. */
type StepForm = Step & Pick<GraphStep, 'payloadAt'>;

/** What is around the steps of a workflow, and its steps as they were sent. */
export interface WorkflowForm extends GraphForm {
  readonly name: string;
  readonly key?: string;
  /** What `{"$from": "input.path"}` means. */
  readonly input?: JsonText;
}

/** A workflow that is started by the name of its definition. */
export interface StartForm {
  readonly definition: string;
  /** Default: the newest. */
  readonly version?: number;
  readonly key?: string;
  readonly input?: JsonText;
}

/** The limits for the steps of a workflow. */
export interface WorkflowContext extends SubmissionContext {
  /** The most bytes of the payloads in which the input was put. */
  readonly maxBulkBytes: number;
}

/** Checks what is around the steps, or which definition is to be started. */
export function readWorkflowForm(input: unknown): WorkflowForm | StartForm {
  if (isPlainObject(input) && Object.hasOwn(input, 'definition'))
    return validate(WorkflowStart, input) as StartForm;
  return mustStopToCancel(validate(WorkflowEnvelope, input) as WorkflowForm);
}

/** Checks what is around the steps of a definition. */
export function readDefinitionForm(input: unknown): GraphForm {
  return mustStopToCancel(validate(WorkflowDefinitionEnvelope, input) as GraphForm);
}

/** Only a failure that stops the workflow does anything to steps that run. */
function mustStopToCancel<F extends GraphForm>(form: F): F {
  if (form.running !== 'cancel' || policiesOf(form).onFailure === 'stop') return form;
  throw invalid([{ pointer: '/running', detail: '"cancel" goes together with "onFailure": "stop" alone' }]);
}

/** Checks the steps and their graph; throws INVALID_REQUEST with a pointer to everything that is wrong. */
export async function parseWorkflow(form: WorkflowForm, context: WorkflowContext): Promise<ParsedWorkflow> {
  const { name, key = null, jobs, input } = form;
  if (input) mustFitInput(input, context.maxPayload);
  return { name, key, ...policiesOf(form), steps: await parseSteps(jobs, context, { input: input ?? null }) };
}

/** Checks a definition as its submission would be, but for the payloads that need an input. */
export function parseGraph({ jobs }: GraphForm, context: WorkflowContext): Promise<ParsedStep[]> {
  return parseSteps(jobs, context, null);
}

/** What failures mean, with the defaults. */
export function policiesOf({
  onFailure = WORKFLOW_DEFAULTS.onFailure,
  running = WORKFLOW_DEFAULTS.running,
}: Pick<GraphForm, 'onFailure' | 'running'>): Required<Pick<GraphForm, 'onFailure' | 'running'>> {
  return { onFailure, running };
}

/** A step that is to be added to a workflow: its parents are names, which are looked up when it is added. */
export interface ParsedAddition extends Omit<ParsedStep, 'parents'> {
  readonly after: readonly string[];
  /** The steps whose results its payload refers to. */
  readonly references: readonly string[];
}

/** Steps that are to be added, and their forms, whose graph is checked when it is known what they are added to. */
export interface ParsedAdditions {
  readonly forms: Readonly<Record<string, GraphStep>>;
  readonly steps: readonly ParsedAddition[];
}

/** Checks everything about steps that are to be added but for their graph. */
export async function parseAdditions(
  jobs: Readonly<Record<string, unknown>>,
  context: WorkflowContext,
): Promise<ParsedAdditions> {
  const forms = await readForms(jobs, context);
  const names = Object.keys(forms);
  const errors: FieldError[] = [];
  const references = await inSlices(readReferences(forms, names, '/jobs', errors));
  if (errors.length > 0) throw invalid(errors);
  const placed = names.map((name, i) => ({
    ...{ name, parents: [], children: [], references: references[i]! },
  }));
  const steps = await toSteps(placed, forms, context, { none: 'added steps have no input' });
  return {
    // The leader checks the graph, and need not search the payloads again.
    forms: Object.fromEntries(
      names.map((name, i) => [name, { ...forms[name]!, references: references[i]! }]),
    ),
    steps: steps.map(({ parents: _, ...step }, i) => ({
      ...step,
      after: forms[step.name]!.after ?? [],
      references: [...new Set(references[i]!.map((reference) => reference.step))],
    })),
  };
}

/** The input of a workflow, or why there can be none. */
type GivenInput = { readonly input: JsonText | null } | { readonly none: string };

/** Without `given`, what the input will be is not known yet. */
async function parseSteps(
  jobs: Readonly<Record<string, unknown>>,
  context: WorkflowContext,
  given: GivenInput | null,
): Promise<ParsedStep[]> {
  const forms = await readForms(jobs, context);
  const { steps, errors } = await checkGraph(forms);
  if (errors) throw invalid(errors);
  return toSteps(steps, forms, context, given);
}

async function toSteps(
  steps: readonly PlacedStep[],
  forms: Readonly<Record<string, StepForm>>,
  context: WorkflowContext,
  given: GivenInput | null,
): Promise<ParsedStep[]> {
  const inner = await readInner(forms, context);
  const runs = steps.filter(({ name }) => forms[name]!.wait === undefined && !inner.has(name));
  if (given && 'none' in given) refuseInput(steps, forms, given.none);
  const payloads = given && 'input' in given ? await resolveInput(steps, forms, given, context) : null;
  const parsed = await parseSubmissions(
    runs.map(({ name }) => {
      const payload = payloads?.get(name);
      return submissionOf(payload ? { ...forms[name]!, payload } : forms[name]!);
    }),
    context,
    {
      pointerOf: (i) => `/jobs${pointerStep(runs[i]!.name)}`,
      isOpen: (i) => runs[i]!.references.some((reference) => !given || !isToInput(reference)),
    },
  );
  const submissionOfStep = new Map(runs.map(({ name }, i) => [name, parsed[i]!]));
  const waiting = waitingJob(context);
  const waitingWith = (name: string) => {
    const input = payloads?.get(name) ?? forms[name]!.payload;
    return input instanceof JsonText ? { ...waiting, payload: input.text } : waiting;
  };
  return steps.map((placed) =>
    toStep(
      placed,
      forms[placed.name]!,
      submissionOfStep.get(placed.name) ?? waitingWith(placed.name),
      inner.get(placed.name) ?? null,
    ),
  );
}

function refuseInput(
  steps: readonly PlacedStep[],
  forms: Readonly<Record<string, StepForm>>,
  why: string,
): void {
  const errors: FieldError[] = [];
  for (const { name, references } of steps) {
    for (const reference of references.filter(isToInput)) {
      if (errors.length > MOST_ERRORS) break;
      const pointer = `${pointerToPayload(forms, name, '/jobs')}${pointerTo(reference.place)}/$from`;
      errors.push({ pointer, detail: `"${nameOf(reference)}": ${why}` });
    }
  }
  if (errors.length > 0) throw invalid(errors);
}

/** The payloads of the steps that refer to the input, with it put in. */
async function resolveInput(
  runs: readonly PlacedStep[],
  forms: Readonly<Record<string, StepForm>>,
  { input }: { readonly input: JsonText | null },
  { maxPayload, maxDepth, maxBulkBytes }: WorkflowContext,
): Promise<ReadonlyMap<string, JsonText>> {
  const open = runs.flatMap(({ name, references }) => {
    const { payload } = forms[name]!;
    const isOpen = payload instanceof JsonText && references.some(isToInput);
    return isOpen ? [{ step: name, payload, references }] : [];
  });
  if (open.length === 0) return new Map();
  const limits = { maxBytes: maxPayload, maxDepth, maxTotalBytes: maxBulkBytes };
  const payloads = await putInput(open, await outlineInput(input), limits);
  return new Map(open.map(({ step }, i) => [step, payloads[i]!]));
}

/** The steps, each of which has the right form, and no payload that is too large to be searched for references. */
async function readForms(
  jobs: Readonly<Record<string, unknown>>,
  limits: WorkflowContext,
): Promise<Record<string, StepForm>> {
  const errors: FieldError[] = [];
  const slice = new TimeSlice();
  for (const [name, step] of Object.entries(jobs)) {
    if (errors.length > MOST_ERRORS) break;
    if (slice.isOver) await slice.next();
    const pointer = `/jobs${pointerStep(name)}`;
    const form = readFields(WorkflowStep, step, pointer, errors) as Step | null;
    if (form?.payload instanceof JsonText) mustFit(form.payload, limits, `${pointer}/payload`);
    if (form?.wait !== undefined) refuseOthers(form, 'wait', pointer, errors);
    else if (form?.workflow !== undefined) refuseOthers(form, 'workflow', pointer, errors);
    else if (isPlainObject(step) && RUNS.every((field) => step[field] === undefined)) {
      const detail = 'is missing: give one of "task", "target", "wait" and "workflow"';
      errors.push({ pointer: `${pointer}/task`, detail });
    }
  }
  if (errors.length > 0) throw invalid(errors);
  return withInputs(jobs as Record<string, Step>, limits);
}

/**
 * The input of a workflow that is a step, and the body of a call that refers to results, is the payload of the step's job: it is
 * searched, bounded and stored like others.
 */
async function withInputs(
  forms: Record<string, Step>,
  limits: WorkflowContext,
): Promise<Record<string, StepForm>> {
  const changed: Record<string, StepForm> = {};
  const slice = new TimeSlice();
  for (const [name, form] of Object.entries(forms)) {
    if (slice.isOver) await slice.next();
    const isWorkflow = form.workflow !== undefined;
    // Most steps have neither, and nothing of them need be waited for.
    if (!isWorkflow && form.target?.type !== 'http') continue;
    const payloadAt = isWorkflow ? '/workflow/input' : '/target/body';
    const pointer = `/jobs${pointerStep(name)}`;
    const input = isWorkflow
      ? await inputOf(textOf(form.workflow), limits)
      : await openBody(form, limits, pointer);
    if (!input) continue;
    mustFit(input, limits, pointer + payloadAt);
    changed[name] = { ...form, payload: input, payloadAt };
  }
  return Object.keys(changed).length === 0 ? forms : { ...forms, ...changed };
}

/** The body of a call if it refers to results or to the input; else the call needs nothing but its target. */
async function openBody(
  { target, payload }: Step,
  limits: WorkflowContext,
  pointer: string,
): Promise<JsonText | null> {
  if (target?.type !== 'http' || target.body === undefined) return null;
  const text = JSON.stringify(target.body);
  if (!text.includes('"$from"')) return null;
  const body = new JsonText(text, Buffer.byteLength(text));
  mustFit(body, limits, `${pointer}/target/body`);
  const { references, errors } = await inSlices(searchReferences(body));
  if (references.length === 0 && errors.length === 0) return null;
  if (payload === undefined) return body;
  const detail =
    'does not go together with a body of the target that holds "$from": the body is what is sent';
  throw invalid([{ pointer: `${pointer}/payload`, detail }]);
}

/** The input that a workflow is given which is a step; what cannot be read is refused when it is checked. */
async function inputOf(text: string, limits: WorkflowContext): Promise<JsonText | null> {
  if (!text.includes('input') && !text.includes('\\u')) return null;
  try {
    const value = await readInnerText(text, limits);
    return isPlainObject(value) && value.input instanceof JsonText ? value.input : null;
  } catch (error) {
    if (error instanceof PunctualError) return null;
    throw error;
  }
}

/** The fields one of which says what a step is. */
const RUNS = ['task', 'target', 'wait', 'workflow'] as const;
const OF_ALL = new Set(['after', 'runIf', 'hold']);

function refuseOthers(step: Step, own: 'wait' | 'workflow', pointer: string, errors: FieldError[]): void {
  for (const field of Object.keys(step)) {
    if (field !== own && !OF_ALL.has(field))
      errors.push({ pointer: pointer + pointerStep(field), detail: `does not go together with "${own}"` });
  }
}

/** The workflows that are steps, checked as far down as they go. */
async function readInner(
  forms: Readonly<Record<string, StepForm>>,
  context: WorkflowContext,
): Promise<Map<string, ParsedInner>> {
  const inner = new Map<string, ParsedInner>();
  for (const [name, { workflow }] of Object.entries(forms)) {
    if (workflow === undefined) continue;
    const pointer = `/jobs${pointerStep(name)}/workflow`;
    if ((context.depth ?? 0) + 1 >= MOST_DEPTH)
      throw invalid([{ pointer, detail: `at most ${MOST_DEPTH} workflows may be inside each other` }]);
    try {
      inner.set(name, await parseInnerStep(textOf(workflow), context));
    } catch (error) {
      if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
      throw invalid(error.errors.map((each) => ({ ...each, pointer: pointer + each.pointer })));
    }
  }
  return inner;
}

/** To the letter, if it was read as text: names that are given twice and digits of numbers would be lost. */
export function textOf(workflow: unknown): string {
  return workflow instanceof JsonText ? workflow.text : JSON.stringify(workflow);
}

/** Checks a workflow that is a step of another one, as far down as it goes. */
export async function parseInnerStep(text: string, context: WorkflowContext): Promise<ParsedInner> {
  const input = await inputOf(text, context);
  // What it comes to is not known before the steps have run that it refers to.
  const isOpen = input !== null && (await inSlices(searchReferences(input))).references.length > 0;
  const inside = { ...context, depth: (context.depth ?? 0) + 1 };
  const { steps } = await parseInner(text, inside, isOpen ? null : { input });
  const all = [...withPlaces(steps)];
  const most = steps.reduce((deepest, step) => Math.max(deepest, step.inner?.depth ?? 0), 0);
  return {
    text,
    steps: all.map(({ step }) => step),
    pointers: all.map(({ pointer }) => pointer),
    depth: most + 1,
  };
}

/** The steps, and those of the workflows that they start, with where each stands in the request. */
export function* withPlaces<S extends Pick<ParsedStep, 'name' | 'inner'>>(
  steps: readonly S[],
): Iterable<{ readonly step: S | ParsedStep; readonly pointer: string }> {
  for (const step of steps) {
    const pointer = `/jobs${pointerStep(step.name)}`;
    yield { step, pointer };
    for (const [i, inside] of (step.inner?.steps ?? []).entries())
      yield { step: inside, pointer: `${pointer}/workflow${step.inner!.pointers[i]!}` };
  }
}

/** Reads a workflow that is a step of another one from its text, so that payloads stay texts. Without `given`, its input is not known yet. */
export async function parseInner(
  text: string,
  context: WorkflowContext,
  given: { readonly input: JsonText | null } | null,
): Promise<Omit<ParsedWorkflow, 'name' | 'key'> & { readonly name: string | null }> {
  const value = await readInnerText(text, context);
  const form = mustStopToCancel(validate(InnerEnvelope, value) as InnerForm);
  const { name = null, jobs } = form;
  return { name, ...policiesOf(form), steps: await parseSteps(jobs, context, given) };
}

/** The value of a workflow that is a step, from its text. */
export function readInnerText(
  text: string,
  { maxDepth }: Pick<WorkflowContext, 'maxDepth'>,
): Promise<unknown> {
  const shape = {
    maxDepth,
    text: 'payload',
    orText: 'workflow',
    topText: 'input',
    maps: ['jobs'],
    mostItems: MOST_STEPS,
  };
  return readLargeJsonText(Buffer.from(text), { ...shape, allowProto: true });
}

type InnerForm = Omit<WorkflowForm, 'name' | 'key'> & { readonly name?: string };

/**
 * The steps of a workflow and of those inside it, unchecked; throws INVALID_REQUEST if there are too many of them. What cannot be
 * read is left out, and refused when it is checked.
 */
export async function allSteps(
  jobs: Readonly<Record<string, unknown>>,
  limits: Pick<WorkflowContext, 'maxDepth'>,
): Promise<unknown[]> {
  const all: unknown[] = [];
  let level = [jobs];
  for (let depth = 1; level.length > 0; depth++) {
    const below: Readonly<Record<string, unknown>>[] = [];
    for (const step of level.flatMap((each) => Object.values(each))) {
      if (all.push(step) > MOST_STEPS) throw invalid([{ pointer: '/jobs', detail: TOO_MANY }]);
      if (depth === MOST_DEPTH || !isPlainObject(step) || step.workflow === undefined) continue;
      below.push(await jobsInside(textOf(step.workflow), limits));
    }
    level = below;
  }
  return all;
}

/** The same for a workflow that is a step of another one. */
export async function allStepsInside(
  text: string,
  limits: Pick<WorkflowContext, 'maxDepth'>,
): Promise<unknown[]> {
  return allSteps(await jobsInside(text, limits), limits);
}

async function jobsInside(
  text: string,
  limits: Pick<WorkflowContext, 'maxDepth'>,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    const value = await readInnerText(text, limits);
    return isPlainObject(value) && isPlainObject(value.jobs) ? value.jobs : {};
  } catch (error) {
    if (error instanceof PunctualError) return {};
    throw error;
  }
}

const TOO_MANY = `has more than ${MOST_STEPS} steps, with those of the workflows inside it`;

function submissionOf({ after, runIf, wait, workflow, payloadAt, ...submission }: StepForm): object {
  return submission;
}

function toStep(
  { name, parents, references }: PlacedStep,
  { runIf = WORKFLOW_DEFAULTS.runIf, wait }: Step,
  { definition, payload }: ParsedSubmission,
  inner: ParsedInner | null,
): ParsedStep {
  const delayMs = definition.runAt - definition.at;
  return {
    name,
    parents,
    runIf,
    delayMs,
    wait: wait ?? null,
    inner,
    refers: !references.every(isToInput),
    definition,
    payload,
  };
}

/** A step that waits is a job that no worker ever gets. */
function waitingJob({ tasks: _, ...context }: SubmissionContext): ParsedSubmission {
  const { definition, payload } = parseSubmission({ task: 'wait' }, context);
  const needs = { ...definition.needs, handler: '' };
  const waiting: JobDefinition = { ...definition, task: null, needs };
  return { definition: waiting, payload };
}
