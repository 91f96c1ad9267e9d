import { type FieldError, invalid, MOST_ERRORS, pointerStep } from '../errors.js';
import { JsonText } from '../json-reader.js';
import { isPlainObject } from '../schemas/explain.js';
import { readFields, validate } from '../schemas/validate.js';
import {
  WorkflowDefinitionEnvelope,
  WorkflowEnvelope,
  WorkflowStart,
  WorkflowStep,
} from '../schemas/workflow.js';
import {
  type JobDefinition,
  type ParsedSubmission,
  parseSubmission,
  parseSubmissions,
  type SubmissionContext,
} from '../submission.js';
import { TimeSlice } from '../time-slice.js';
import {
  type FailurePolicy,
  type RunIf,
  type RunningPolicy,
  type WorkflowStep as Step,
  WORKFLOW_DEFAULTS,
} from '../workflow.js';
import { checkGraph, type GraphStep, type PlacedStep } from './graph.js';
import { outlineInput, putInput } from './input.js';
import { findReferences, isToInput } from './references.js';

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
  /** Whether its payload refers to results of other steps. */
  readonly refers: boolean;
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
  return validate(WorkflowEnvelope, input) as WorkflowForm;
}

/** Checks what is around the steps of a definition. */
export function readDefinitionForm(input: unknown): GraphForm {
  return validate(WorkflowDefinitionEnvelope, input) as GraphForm;
}

/** Checks the steps and their graph; throws INVALID_REQUEST with a pointer to everything that is wrong. */
export async function parseWorkflow(form: WorkflowForm, context: WorkflowContext): Promise<ParsedWorkflow> {
  const { name, key = null, jobs, input } = form;
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
  const forms = await readForms(jobs);
  const slice = new TimeSlice();
  const placed: PlacedStep[] = [];
  for (const [name, { payload }] of Object.entries(forms)) {
    if (slice.isOver) await slice.next();
    const { references } = payload instanceof JsonText ? findReferences(payload) : { references: [] };
    placed.push({ name, parents: [], children: [], references });
  }
  const steps = await toSteps(placed, forms, context, { input: null });
  return {
    forms,
    steps: steps.map(({ parents: _, ...step }, i) => ({
      ...step,
      after: forms[step.name]!.after ?? [],
      references: [...new Set(placed[i]!.references.map((reference) => reference.step))],
    })),
  };
}

/** Without `given`, what the input will be is not known yet. */
async function parseSteps(
  jobs: Readonly<Record<string, unknown>>,
  context: WorkflowContext,
  given: { readonly input: JsonText | null } | null,
): Promise<ParsedStep[]> {
  const forms = await readForms(jobs);
  const { steps, errors } = checkGraph(forms);
  if (errors) throw invalid([...errors]);
  return toSteps(steps, forms, context, given);
}

async function toSteps(
  steps: readonly PlacedStep[],
  forms: Readonly<Record<string, Step>>,
  context: WorkflowContext,
  given: { readonly input: JsonText | null } | null,
): Promise<ParsedStep[]> {
  const runs = steps.filter(({ name }) => forms[name]!.wait === undefined);
  const payloads = given && (await resolveInput(runs, forms, given, context));
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
  return steps.map((placed) =>
    toStep(placed, forms[placed.name]!, submissionOfStep.get(placed.name) ?? waiting),
  );
}

/** The payloads of the steps that refer to the input, with it put in. */
async function resolveInput(
  runs: readonly PlacedStep[],
  forms: Readonly<Record<string, Step>>,
  { input }: { readonly input: JsonText | null },
  { maxPayload, maxDepth, maxBulkBytes }: WorkflowContext,
): Promise<ReadonlyMap<string, JsonText>> {
  const outline = outlineInput(input);
  const open = runs.flatMap(({ name, references }) => {
    const { payload } = forms[name]!;
    const isOpen = payload instanceof JsonText && references.some(isToInput);
    return isOpen ? [{ step: name, payload, references }] : [];
  });
  if (open.length === 0) return new Map();
  const limits = { maxBytes: maxPayload, maxDepth, maxTotalBytes: maxBulkBytes };
  const payloads = await putInput(open, outline, limits);
  return new Map(open.map(({ step }, i) => [step, payloads[i]!]));
}

/** The steps, each of which has the right form. */
async function readForms(jobs: Readonly<Record<string, unknown>>): Promise<Record<string, Step>> {
  const errors: FieldError[] = [];
  const slice = new TimeSlice();
  for (const [name, step] of Object.entries(jobs)) {
    if (errors.length > MOST_ERRORS) break;
    if (slice.isOver) await slice.next();
    const pointer = `/jobs${pointerStep(name)}`;
    const form = readFields(WorkflowStep, step, pointer, errors) as Step | null;
    if (form?.wait !== undefined) refuseOthers(form, pointer, errors);
  }
  if (errors.length > 0) throw invalid(errors);
  return jobs as Record<string, Step>;
}

const OF_WAITING = new Set(['wait', 'after', 'runIf', 'hold']);

function refuseOthers(step: Step, pointer: string, errors: FieldError[]): void {
  for (const field of Object.keys(step)) {
    if (!OF_WAITING.has(field))
      errors.push({ pointer: pointer + pointerStep(field), detail: 'does not go together with "wait"' });
  }
}

function submissionOf({ after, runIf, wait, ...submission }: Step): object {
  return submission;
}

function toStep(
  { name, parents, references }: PlacedStep,
  { runIf = WORKFLOW_DEFAULTS.runIf, wait }: Step,
  { definition, payload }: ParsedSubmission,
): ParsedStep {
  const delayMs = definition.runAt - definition.at;
  return {
    name,
    parents,
    runIf,
    delayMs,
    wait: wait ?? null,
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
