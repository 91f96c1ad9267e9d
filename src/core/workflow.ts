import type { Duration } from './duration.js';
import type { AttemptOutcome, EndState, JobState, JobTemplate } from './job.js';

/**
 * The shape of a workflow in the public contract. The types are written out, like those of jobs; `schemas/schemas.test-d.ts`
 * proves that the schemas say the same.
 */

/** The rule for names of steps: no dots, because `$from` puts them between a step and the path in its result. */
export const STEP_NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
/** Completes "must be …" in an error about the name of a step. */
export const STEP_NAME_FORM = '1 to 64 letters, digits, "_" or "-"';

/** What `$from` calls the input of a workflow, and so no step. */
export const INPUT = 'input';

/** The most steps of one workflow. */
export const MOST_STEPS = 10_000;
/** The most entries of `after` in one workflow. */
export const MOST_EDGES = 50_000;
/** The most references, `$from`, in the payloads of one workflow. */
export const MOST_FROM = 50_000;

/** When a step runs, decided once, when none of the steps in `after` is left. */
export const RUN_IFS = ['all-succeeded', 'all-finished', 'any-failed', 'any-succeeded'] as const;
/** When a step runs. */
export type RunIf = (typeof RUN_IFS)[number];

/** What a step that fails means for the others: the rest is skipped, or they go on by their `runIf`. */
export const FAILURE_POLICIES = ['stop', 'continue'] as const;
/** What a step that fails means for the others. */
export type FailurePolicy = (typeof FAILURE_POLICIES)[number];

/** What becomes of running steps when a failure stops the workflow. */
export const RUNNING_POLICIES = ['finish', 'cancel'] as const;
/** What becomes of running steps when a failure stops the workflow. */
export type RunningPolicy = (typeof RUNNING_POLICIES)[number];

/** What a workflow takes where it says nothing. */
export const WORKFLOW_DEFAULTS = {
  runIf: 'all-succeeded',
  onFailure: 'continue',
  running: 'finish',
} as const satisfies { runIf: RunIf; onFailure: FailurePolicy; running: RunningPolicy };

/** The states of a workflow. */
export const WORKFLOW_STATES = ['running', 'succeeded', 'failed', 'cancelled'] as const;
/** The state of a workflow. */
export type WorkflowState = (typeof WORKFLOW_STATES)[number];
/** The state of a workflow that has ended. */
export type WorkflowEnd = Exclude<WorkflowState, 'running'>;

/** Waits for an event of the workflow; its payload becomes the result of the step. */
export interface EventWait {
  readonly event: string;
  /** The step fails if the event has not come by then. */
  readonly timeout?: Duration;
}

/** The most workflows inside each other. */
export const MOST_DEPTH = 8;

/** A workflow that is a step of another one. */
export interface InnerWorkflow {
  /** Default: the name of the workflow around it. */
  readonly name?: string;
  readonly jobs: WorkflowSteps;
  /** Default `continue`. */
  readonly onFailure?: FailurePolicy;
  /** Default `finish`. */
  readonly running?: RunningPolicy;
  /** What `$from` of `input.path` in the payloads of its steps means; may hold `$from` of steps around it. */
  readonly input?: unknown;
}

/** A workflow that is a step of another one, by the name of its definition. */
export interface NamedWorkflow {
  readonly definition: string;
  /** Default: the newest when the workflow around it is submitted. */
  readonly version?: number;
  /** What `$from` of `input.path` in the payloads of its steps means; may hold `$from` of steps around it. */
  readonly input?: unknown;
}

/** A step of a workflow: a job, or with `wait` something to wait for, or with `workflow` another workflow. */
export interface WorkflowStep extends JobTemplate {
  /** The steps that must have ended before this one is decided. */
  readonly after?: readonly string[];
  /** Default `all-succeeded`. */
  readonly runIf?: RunIf;
  /** How long after its release the step starts. */
  readonly delay?: Duration;
  /** The step fails if it has not started by this time (RFC 3339). */
  readonly startBefore?: string;
  /** Whether it waits until it is released by a person, too. */
  readonly hold?: boolean;
  /** Instead of a job: the step ends when the event comes, or when the time has passed. */
  readonly wait?: Duration | EventWait;
  /** Instead of a job: a workflow, or the name of a definition, that starts when the step is released; the step ends when it does. */
  readonly workflow?: InnerWorkflow | NamedWorkflow | string;
}

/** The steps of a workflow by their names. */
export type WorkflowSteps = Readonly<Record<string, WorkflowStep>>;

/** What a client sends to have a graph of jobs run. */
export interface WorkflowSubmission {
  readonly name: string;
  /** A second submission with the same key gets the same workflow. */
  readonly key?: string;
  /** What `$from` of `input.path` in the payloads of steps means. */
  readonly input?: unknown;
  readonly jobs: WorkflowSteps;
  /** Default `continue`. */
  readonly onFailure?: FailurePolicy;
  /** Default `finish`. */
  readonly running?: RunningPolicy;
}

/** What a client sends to have a definition run. */
export interface WorkflowStart {
  /** The name of the definition, which is also the name of the workflow. */
  readonly definition: string;
  /** Default: the newest. */
  readonly version?: number;
  /** A second start with the same key gets the same workflow. */
  readonly key?: string;
  /** What `$from` of `input.path` in the payloads of steps means. */
  readonly input?: unknown;
}

/** A graph that is kept under a name. */
export interface WorkflowDefinitionInput {
  readonly jobs: WorkflowSteps;
  /** Default `continue`. */
  readonly onFailure?: FailurePolicy;
  /** Default `finish`. */
  readonly running?: RunningPolicy;
}

/** A definition in a list: its newest version. */
export interface ListedWorkflowDefinition {
  readonly tenant: string;
  readonly name: string;
  /** Counts up with each change of what it says. */
  readonly version: number;
  readonly steps: number;
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  readonly createdAt: string;
  readonly createdBy: string;
}

/** One version of a definition as the API shows it. */
export interface StoredWorkflowDefinition extends ListedWorkflowDefinition {
  /** Whether starts without a version take this one. */
  readonly newest: boolean;
  /** The versions that are kept, the newest first; at most 1,000. */
  readonly versions: readonly number[];
  readonly jobs: WorkflowSteps;
}

/** What a step whose turn has come waits for: an event, a time, or the workflow that it has started. */
export interface StepWait {
  readonly event: string | null;
  /** When it has waited long enough; null for a workflow, and for an event without a timeout. */
  readonly until: string | null;
  /** The id of the workflow; null as long as it is not stored. */
  readonly workflow: string | null;
}

/** When an attempt of a step ran. */
export interface StepAttempt {
  readonly fence: number;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly outcome: AttemptOutcome | null;
}

/** A step of a workflow as it is shown. */
export interface WorkflowStepView {
  /** The id of its job. */
  readonly id: string;
  readonly state: JobState;
  readonly after: readonly string[];
  readonly runIf: RunIf;
  /** The step that added it while it ran; null if it was submitted with the workflow. */
  readonly addedBy: string | null;
  /** The id of the workflow that the step has started; null if it has started none. */
  readonly workflow: string | null;
  /** What it waits for besides steps; null if it does not, not yet or not any more. */
  readonly waitsFor: StepWait | null;
  readonly finishedAt: string | null;
  /** Since when it could run, null if not yet; only where attempts are asked for. */
  readonly readyAt?: string | null;
  /** Its attempts since then, the first one first, at most the newest twenty; only where they are asked for. */
  readonly attempts?: readonly StepAttempt[];
}

/** Steps that a running step adds to its workflow. */
export interface StepAddition {
  readonly jobs: WorkflowSteps;
  /** Whether the steps that wait for the one that adds also wait for these; default true. */
  readonly join?: boolean;
  /** The attempt that adds them; may be left out by one that comes with its own token. */
  readonly by?: { readonly jobId: string; readonly fence: number };
}

/** Steps that were added to a workflow, now or by an earlier request of the same job. */
export interface AddedSteps {
  /** The id of the workflow. */
  readonly workflow: string;
  readonly jobs: Readonly<Record<string, WorkflowStepView>>;
}

/** A workflow in a list. */
export interface ListedWorkflow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly key: string | null;
  /** The definition that it was started from. */
  readonly definition: { readonly name: string; readonly version: number } | null;
  /** The schedule that started it. */
  readonly schedule: string | null;
  /** Its occurrence; null for one that was run by hand. */
  readonly scheduledAt: string | null;
  readonly state: WorkflowState;
  /** Counts how often it was set going: by its submission and by retries. */
  readonly run: number;
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  /** Why the rest of it is skipped: a failure, or because somebody cancelled it. */
  readonly stopping: 'failure' | 'cancel' | null;
  /** Whether no step starts until somebody releases it. */
  readonly held: boolean;
  /** The workflow that it repeats. */
  readonly rerunOf: string | null;
  readonly progress: { readonly steps: number; readonly ended: number; readonly failed: number };
  /** The step of another workflow that it is: the ids of that workflow and of the step's job; null if it is none. */
  readonly parent: { readonly workflow: string; readonly job: string } | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly endedAt: string | null;
}

/** A step on the critical path of its workflow. */
export interface CriticalStep {
  readonly name: string;
  readonly state: JobState;
  /** From the end of the step before it to its first attempt. */
  readonly waitedMs: number;
  /** From there to its end, or until now; pauses between its attempts are part of it. */
  readonly ranMs: number;
  readonly totalMs: number;
}

/** The chain of steps that determined when a workflow ended, or that determines how far it is. */
export interface CriticalPath {
  /** From the submission to the end of the last step, or until now. */
  readonly totalMs: number;
  /** What the listed steps spent waiting. */
  readonly waitedMs: number;
  /** What the listed steps spent running. */
  readonly ranMs: number;
  /** In their order; of a longer path the thousand that took longest. */
  readonly steps: readonly CriticalStep[];
  /** How many steps of the path are not listed. */
  readonly left: number;
}

/** A workflow as the API shows it. */
export interface Workflow extends ListedWorkflow {
  readonly criticalPath: CriticalPath;
  /** Its steps by their names. */
  readonly jobs: Readonly<Record<string, WorkflowStepView>>;
}

/** What became of an event that a workflow was told of. */
export interface EventOutcome {
  readonly name: string;
  /** The steps that it has ended. */
  readonly completed: readonly string[];
  /** Whether one of that name had come before, which is kept; then this one has changed nothing. */
  readonly repeated: boolean;
  /** Whether a step that has not ended waits for an event of that name, or will when it is reached, or was ended by this one. */
  readonly expected: boolean;
  /** The other events that steps wait for, or will; at most twenty. */
  readonly awaited: readonly string[];
}

/** A workflow after it was told of an event. */
export interface WorkflowAfterEvent extends Workflow {
  readonly event: EventOutcome;
}

/** How a step of a workflow stands. */
export type StepState = JobState;
/** How a step of a workflow ended. */
export type StepEnd = EndState;
