import { type FieldError, invalid, MOST_ERRORS, PunctualError, pointerStep } from '../errors.js';
import { JsonText, readLargeJsonText } from '../json-reader.js';
import { isPlainObject } from '../schemas/explain.js';
import { readFields, validate } from '../schemas/validate.js';
import { InnerEnvelope, WorkflowEnvelope, WorkflowStep } from '../schemas/workflow.js';
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
  MOST_DEPTH,
  MOST_STEPS,
  type RunIf,
  type RunningPolicy,
  type WorkflowStep as Step,
  WORKFLOW_DEFAULTS,
} from '../workflow.js';
import { checkGraph, type GraphStep, type PlacedStep } from './graph.js';
import { findReferences } from './references.js';

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
  /** How many workflows are inside each other, itself included. */
  readonly depth: number;
}

/** A workflow that can be stored; every step is behind its parents. */
export interface ParsedWorkflow {
  readonly name: string;
  readonly key: string | null;
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  readonly steps: readonly ParsedStep[];
}

/** What is around the steps of a workflow, and its steps as they were sent. */
export interface WorkflowForm {
  readonly name: string;
  readonly key?: string;
  readonly onFailure?: FailurePolicy;
  readonly running?: RunningPolicy;
  readonly jobs: Readonly<Record<string, unknown>>;
}

/** Checks what is around the steps. */
export function readWorkflowForm(input: unknown): WorkflowForm {
  return validate(WorkflowEnvelope, input) as WorkflowForm;
}

/** Checks the steps and their graph; throws INVALID_REQUEST with a pointer to everything that is wrong. */
export async function parseWorkflow(form: WorkflowForm, context: SubmissionContext): Promise<ParsedWorkflow> {
  const { name, key = null, jobs } = form;
  const { onFailure = WORKFLOW_DEFAULTS.onFailure, running = WORKFLOW_DEFAULTS.running } = form;
  return { name, key, onFailure, running, steps: await parseSteps(jobs, context) };
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
  context: SubmissionContext,
): Promise<ParsedAdditions> {
  const forms = await readForms(jobs);
  const slice = new TimeSlice();
  const placed: PlacedStep[] = [];
  for (const [name, { payload }] of Object.entries(forms)) {
    if (slice.isOver) await slice.next();
    const { references } = payload instanceof JsonText ? findReferences(payload) : { references: [] };
    placed.push({ name, parents: [], children: [], references });
  }
  const steps = await toSteps(placed, forms, context);
  return {
    forms,
    steps: steps.map(({ parents: _, ...step }, i) => ({
      ...step,
      after: forms[step.name]!.after ?? [],
      references: [...new Set(placed[i]!.references.map((reference) => reference.step))],
    })),
  };
}

async function parseSteps(
  jobs: Readonly<Record<string, unknown>>,
  context: SubmissionContext,
): Promise<ParsedStep[]> {
  const forms = await readForms(jobs);
  const { steps, errors } = checkGraph(forms);
  if (errors) throw invalid([...errors]);
  return toSteps(steps, forms, context);
}

async function toSteps(
  steps: readonly PlacedStep[],
  forms: Readonly<Record<string, Step>>,
  context: SubmissionContext,
): Promise<ParsedStep[]> {
  const inner = await readInner(forms, context);
  const runs = steps.filter(({ name }) => forms[name]!.wait === undefined && !inner.has(name));
  const parsed = await parseSubmissions(
    runs.map(({ name }) => submissionOf(forms[name]!)),
    context,
    {
      pointerOf: (i) => `/jobs${pointerStep(runs[i]!.name)}`,
      isOpen: (i) => runs[i]!.references.length > 0,
    },
  );
  const submissionOfStep = new Map(runs.map(({ name }, i) => [name, parsed[i]!]));
  const waiting = waitingJob(context);
  return steps.map((placed) =>
    toStep(
      placed,
      forms[placed.name]!,
      submissionOfStep.get(placed.name) ?? waiting,
      inner.get(placed.name) ?? null,
    ),
  );
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
    if (form?.wait !== undefined) refuseOthers(form, 'wait', pointer, errors);
    else if (form?.workflow !== undefined) refuseOthers(form, 'workflow', pointer, errors);
  }
  if (errors.length > 0) throw invalid(errors);
  return jobs as Record<string, Step>;
}

const OF_ALL = new Set(['after', 'runIf', 'hold']);

function refuseOthers(step: Step, own: 'wait' | 'workflow', pointer: string, errors: FieldError[]): void {
  for (const field of Object.keys(step)) {
    if (field !== own && !OF_ALL.has(field))
      errors.push({ pointer: pointer + pointerStep(field), detail: `does not go together with "${own}"` });
  }
}

/** The workflows that are steps, checked as far down as they go. */
async function readInner(
  forms: Readonly<Record<string, Step>>,
  context: SubmissionContext,
): Promise<Map<string, ParsedInner>> {
  const inner = new Map<string, ParsedInner>();
  for (const [name, { workflow }] of Object.entries(forms)) {
    if (workflow === undefined) continue;
    const pointer = `/jobs${pointerStep(name)}/workflow`;
    const depth = (context.depth ?? 0) + 1;
    if (depth >= MOST_DEPTH)
      throw invalid([{ pointer, detail: `at most ${MOST_DEPTH} workflows may be inside each other` }]);
    const text = JSON.stringify(workflow);
    try {
      const { steps } = await parseInner(text, { ...context, depth });
      const below = steps.flatMap((step) => step.inner?.steps ?? []);
      const most = steps.reduce((deepest, step) => Math.max(deepest, step.inner?.depth ?? 0), 0);
      inner.set(name, { text, steps: [...steps, ...below], depth: most + 1 });
    } catch (error) {
      if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
      throw invalid(error.errors.map((each) => ({ ...each, pointer: pointer + each.pointer })));
    }
  }
  return inner;
}

/** Reads a workflow that is a step of another one from its text, so that payloads stay texts. */
export async function parseInner(
  text: string,
  context: SubmissionContext,
): Promise<Omit<ParsedWorkflow, 'name' | 'key'> & { readonly name: string | null }> {
  const { maxDepth } = context;
  const shape = { maxDepth, text: 'payload', maps: ['jobs'], mostItems: MOST_STEPS, allowProto: true };
  const value = await readLargeJsonText(Buffer.from(text), shape);
  const { name = null, jobs, ...policies } = validate(InnerEnvelope, value) as InnerForm;
  const { onFailure = WORKFLOW_DEFAULTS.onFailure, running = WORKFLOW_DEFAULTS.running } = policies;
  return { name, onFailure, running, steps: await parseSteps(jobs, context) };
}

type InnerForm = Omit<WorkflowForm, 'name' | 'key'> & { readonly name?: string };

/** The steps of a workflow and of those inside it, unchecked. */
export function* allSteps(jobs: Readonly<Record<string, unknown>>, depth = 1): Iterable<unknown> {
  for (const step of Object.values(jobs)) {
    yield step;
    const inner = isPlainObject(step) && isPlainObject(step.workflow) ? step.workflow.jobs : undefined;
    if (isPlainObject(inner) && depth < MOST_DEPTH) yield* allSteps(inner, depth + 1);
  }
}

function submissionOf({ after, runIf, wait, workflow, ...submission }: Step): object {
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
    refers: references.length > 0,
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
