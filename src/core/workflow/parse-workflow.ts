import { type FieldError, invalid, MOST_ERRORS, pointerStep } from '../errors.js';
import { JsonText } from '../json-reader.js';
import { readFields, validate } from '../schemas/validate.js';
import { WorkflowEnvelope, WorkflowStep } from '../schemas/workflow.js';
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
  /** Whether its payload refers to results of other steps. */
  readonly refers: boolean;
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
  const runs = steps.filter(({ name }) => forms[name]!.wait === undefined);
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
    toStep(placed, forms[placed.name]!, submissionOfStep.get(placed.name) ?? waiting),
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
