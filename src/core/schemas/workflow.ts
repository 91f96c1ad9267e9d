import Type from 'typebox';
import { ATTEMPT_OUTCOMES } from '../job.js';
import {
  FAILURE_POLICIES,
  type InnerWorkflow,
  MOST_DEPTH,
  MOST_EDGES,
  MOST_STEPS,
  type NamedWorkflow,
  RUN_IFS,
  RUNNING_POLICIES,
  STEP_NAME_FORM,
  STEP_NAME_PATTERN,
  type WorkflowStep as Step,
  type WorkflowStepView as StepViewShape,
  WORKFLOW_DEFAULTS,
  WORKFLOW_STATES,
} from '../workflow.js';
import { JobState, StepWait } from './job.js';
import { nullable, page, strict } from './object.js';
import { PageQuery, someOf } from './query.js';
import { JobSubmission } from './submission.js';
import { Duration, Id, Json, line, Name } from './text.js';

/** The name of a step. */
export const StepName = Type.String({ pattern: STEP_NAME_PATTERN.source, 'x-expected': STEP_NAME_FORM });

/** When a step runs. */
export const RunIf = Type.Enum(RUN_IFS, { type: 'string', default: WORKFLOW_DEFAULTS.runIf });

const Wait = Type.Union([Duration, strict({ event: Name, timeout: Type.Optional(Duration) })], {
  title: 'Wait',
  description: 'The step takes no worker: it ends when the time has passed or the event has come.',
  'x-expected': 'a duration such as "30m" or {"event": a name, "timeout": a duration}',
});

/** Its own steps are checked one by one; a description that contains itself would help few readers. */
const Inner = Type.Unsafe<InnerWorkflow | NamedWorkflow | string>({
  title: 'InnerWorkflow',
  description:
    `A workflow of its own, {"name"?, "jobs", "onFailure"?, "running"?, "input"?}, up to ${MOST_DEPTH} inside each other, or the ` +
    'name of a definition, or {"definition", "version"?, "input"?}. `input` may hold `$from`. It starts when the step is released, and the step ends when it does: succeeded with {"workflow": its id, "state"} as its result, or failed.',
});

/** What is around the steps of a workflow that is a step of another one. */
export const InnerEnvelope = strict({
  name: Type.Optional(Name),
  input: Type.Optional(Type.Unknown()),
  jobs: Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    minProperties: 1,
    maxProperties: MOST_STEPS,
    propertyNames: StepName,
  }),
  onFailure: Type.Optional(
    Type.Enum(FAILURE_POLICIES, { type: 'string', default: WORKFLOW_DEFAULTS.onFailure }),
  ),
  running: Type.Optional(Type.Enum(RUNNING_POLICIES, { type: 'string', default: WORKFLOW_DEFAULTS.running })),
});

/** A workflow that is a step of another one, by the name of its definition. */
export const NamedInner = strict({
  definition: Name,
  version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
  input: Type.Optional(Type.Unknown()),
});

/** A step says what a submission says, but for what belongs to a single job. */
const { runAt, key, keyMode, keyWindow, ...JOB } = JobSubmission.properties;

/** A step of a workflow. */
export const WorkflowStep = strict(
  {
    ...JOB,
    after: Type.Optional(Type.Array(StepName, { maxItems: MOST_STEPS })),
    runIf: Type.Optional(RunIf),
    wait: Type.Optional(Wait),
    workflow: Type.Optional(Inner),
  },
  {
    title: 'WorkflowStep',
    description:
      'Give one of `task`, `target`, `wait` and `workflow`; with the last two, a step has only `after`, `runIf` and `hold` besides. `delay` counts from its release. ' +
      '`{"$from": "step.result.path"}` anywhere in `payload` becomes what an earlier step returned.',
    examples: [{ task: 'publish', after: ['render'], payload: { page: { $from: 'render.result.page' } } }],
  },
);

/** The steps of a workflow by their names. */
export const WorkflowSteps = Type.Unsafe<Record<string, Step>>({
  type: 'object',
  minProperties: 1,
  maxProperties: MOST_STEPS,
  propertyNames: StepName,
  additionalProperties: WorkflowStep,
  description: `The steps by their names; at most ${MOST_EDGES} entries of \`after\` in all.`,
});

const FIELDS = {
  onFailure: Type.Optional(
    Type.Enum(FAILURE_POLICIES, { type: 'string', default: WORKFLOW_DEFAULTS.onFailure }),
  ),
  running: Type.Optional(Type.Enum(RUNNING_POLICIES, { type: 'string', default: WORKFLOW_DEFAULTS.running })),
};

const Key = Type.Optional(line(512));
const Input = Type.Optional(
  Type.Unknown({
    description: 'Any JSON value: what `{"$from": "input.path"}` in the payloads of steps means.',
  }),
);
/** The number of a version of a definition. */
export const DefinitionVersion = Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 });

/** What a client sends to have a graph of jobs run. */
export const WorkflowSubmission = strict(
  { name: Name, key: Key, input: Input, jobs: WorkflowSteps, ...FIELDS },
  {
    title: 'WorkflowSubmission',
    examples: [
      {
        name: 'publish',
        jobs: { render: { task: 'render' }, upload: { task: 'upload', after: ['render'] } },
      },
    ],
  },
);

/** Steps that are checked one by one, so that others have their turn in between. */
const UncheckedSteps = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  minProperties: 1,
  maxProperties: MOST_STEPS,
  propertyNames: StepName,
});

/** The same without its steps. */
export const WorkflowEnvelope = strict({ ...WorkflowSubmission.properties, jobs: UncheckedSteps });

/** What a client sends to have a definition run. */
export const WorkflowStart = strict(
  {
    definition: Name,
    version: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1, description: 'Default: the newest version.' }),
    ),
    key: Key,
    input: Input,
  },
  {
    title: 'WorkflowStart',
    description: 'Starts a workflow by the name of its definition, which is also the name of the workflow.',
    examples: [{ definition: 'publish', input: { page: 42 } }],
  },
);

/** A graph with all its steps, or the name of one. */
export const WorkflowRequest = Type.Union([WorkflowSubmission, WorkflowStart], { title: 'WorkflowRequest' });

/** A graph that is kept under a name. */
export const WorkflowDefinitionInput = strict(
  { jobs: WorkflowSteps, ...FIELDS },
  {
    title: 'WorkflowDefinitionInput',
    description: '`{"$from": "input.path"}` anywhere in a payload becomes a part of the input of each start.',
    examples: [
      {
        jobs: {
          render: { task: 'render', payload: { page: { $from: 'input.page' } } },
          upload: { task: 'upload', after: ['render'] },
        },
      },
    ],
  },
);

/** The same without its steps. */
export const WorkflowDefinitionEnvelope = strict({
  ...WorkflowDefinitionInput.properties,
  jobs: UncheckedSteps,
});

const Time = Type.String({ format: 'date-time' });
const Whole = Type.Integer();

const StepAttempt = Type.Object(
  {
    fence: Whole,
    startedAt: Time,
    finishedAt: nullable(Time),
    outcome: nullable(Type.Enum(ATTEMPT_OUTCOMES, { type: 'string' })),
  },
  { title: 'StepAttempt', description: 'When an attempt of a step ran.' },
);

const StepView = Type.Object(
  {
    id: Type.String({ description: 'The id of its job.' }),
    state: JobState,
    after: Type.Array(Type.String()),
    runIf: RunIf,
    addedBy: nullable(
      Type.String({
        description: 'The step that added it while it ran; null if it was submitted with the workflow.',
      }),
    ),
    workflow: nullable(Type.String({ description: 'The id of the workflow that the step has started.' })),
    waitsFor: nullable(StepWait),
    finishedAt: nullable(Time),
    readyAt: Type.Optional(
      nullable(
        Type.String({
          format: 'date-time',
          description: 'Since when it could run, null if not yet; only with `include=attempts`.',
        }),
      ),
    ),
    attempts: Type.Optional(
      Type.Array(StepAttempt, {
        description:
          'Its attempts since then, the first one first, at most the newest twenty; only with `include=attempts`.',
      }),
    ),
  },
  { title: 'WorkflowStepView' },
);

/** Steps that a running step adds to its workflow. */
export const StepAddition = strict(
  {
    jobs: WorkflowSteps,
    join: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'Whether the steps that wait for the one that adds also wait for these.',
      }),
    ),
    by: Type.Optional(
      strict(
        { jobId: Id, fence: Type.Integer({ minimum: 1 }) },
        { description: 'The attempt that adds them; may be left out by one that comes with its own token.' },
      ),
    ),
  },
  {
    title: 'StepAddition',
    examples: [{ jobs: { 'page-1': { task: 'render', payload: { page: 1 } } } }],
  },
);

/** The same without its steps, which are checked one by one so that others have their turn in between. */
export const StepAdditionEnvelope = strict({
  ...StepAddition.properties,
  jobs: Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    minProperties: 1,
    maxProperties: MOST_STEPS,
    propertyNames: StepName,
  }),
});

/** Steps that were added to a workflow. */
export const AddedSteps = Type.Object(
  {
    workflow: Type.String({ description: 'The id of the workflow.' }),
    jobs: Type.Unsafe<Record<string, StepViewShape>>({
      type: 'object',
      additionalProperties: StepView,
      description: 'The steps by their names.',
    }),
  },
  { title: 'AddedSteps' },
);

const VIEW = {
  id: Type.String(),
  tenant: Type.String(),
  name: Type.String(),
  key: nullable(Type.String()),
  definition: nullable(
    Type.Object(
      { name: Type.String(), version: Type.Integer() },
      { title: 'UsedDefinition', description: 'The definition that it was started from.' },
    ),
  ),
  schedule: nullable(Type.String({ description: 'The schedule that started it.' })),
  scheduledAt: nullable(
    Type.String({ format: 'date-time', description: 'Its occurrence; null for one that was run by hand.' }),
  ),
  state: Type.Enum(WORKFLOW_STATES, { type: 'string' }),
  run: Type.Integer({ description: 'Counts how often it was set going: by its submission and by retries.' }),
  onFailure: Type.Enum(FAILURE_POLICIES, { type: 'string' }),
  running: Type.Enum(RUNNING_POLICIES, { type: 'string' }),
  stopping: nullable(
    Type.Enum(['failure', 'cancel'], { type: 'string', description: 'Why the rest of it is skipped.' }),
  ),
  held: Type.Boolean({ description: 'Whether no step starts until somebody releases it.' }),
  rerunOf: nullable(Type.String({ description: 'The workflow that it repeats.' })),
  progress: Type.Object({ steps: Whole, ended: Whole, failed: Whole }, { title: 'WorkflowProgress' }),
  parent: nullable(
    Type.Object(
      { workflow: Type.String(), job: Type.String() },
      { title: 'WorkflowParent', description: 'The step of another workflow that it is.' },
    ),
  ),
  createdAt: Time,
  createdBy: Type.String(),
  endedAt: nullable(Time),
};

const CriticalPath = Type.Object(
  {
    totalMs: Type.Integer({
      description: 'From the submission to the end of the last step, or until now.',
    }),
    waitedMs: Type.Integer({ description: 'What the listed steps spent waiting.' }),
    ranMs: Type.Integer({ description: 'What the listed steps spent running.' }),
    steps: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          state: JobState,
          waitedMs: Type.Integer({ description: 'From the end of the step before it to its first attempt.' }),
          ranMs: Type.Integer({ description: 'From there to its end, or until now.' }),
          totalMs: Whole,
        },
        { title: 'CriticalStep' },
      ),
      { description: 'In their order; of a longer path the thousand that took longest.' },
    ),
    left: Type.Integer({ description: 'How many steps of the path are not listed.' }),
  },
  {
    title: 'CriticalPath',
    description:
      'The chain of steps that determined when the workflow ended, or that determines how far it is.',
  },
);

/** A workflow as the API shows it. */
export const WorkflowView = Type.Object(
  {
    ...VIEW,
    criticalPath: CriticalPath,
    jobs: Type.Unsafe<Record<string, StepViewShape>>({
      type: 'object',
      additionalProperties: StepView,
      description: 'The steps by their names.',
    }),
  },
  { title: 'Workflow' },
);

/** A workflow after it was told of an event. */
export const WorkflowAfterEvent = Type.Object(
  {
    ...WorkflowView.properties,
    event: Type.Object(
      {
        name: Type.String(),
        completed: Type.Array(Type.String(), { description: 'The steps that it has ended.' }),
        repeated: Type.Boolean({
          description:
            'Whether one of that name had come before, which is kept; then this one has changed nothing.',
        }),
        expected: Type.Boolean({
          description:
            'Whether a step that has not ended waits for an event of that name, or will when it is reached, or was ended by it.',
        }),
        awaited: Type.Array(Type.String(), {
          description: 'The other events that steps wait for, or will; at most twenty.',
        }),
      },
      { title: 'EventOutcome' },
    ),
  },
  { title: 'WorkflowAfterEvent' },
);

/** One page of workflows, newest first. */
export const WorkflowPage = page('WorkflowPage', Type.Object(VIEW, { title: 'ListedWorkflow' }));

/** Which workflows to list. */
export const WorkflowListQuery = strict({
  state: Type.Optional(someOf(WORKFLOW_STATES, 'running,failed')),
  name: Type.Optional(Name),
  key: Type.Optional(line(512)),
  definition: Type.Optional(Name),
  schedule: Type.Optional(Name),
  limit: PageQuery.properties.limit,
  after: Type.Optional(Id),
});

const DEFINITION_VIEW = {
  tenant: Type.String(),
  name: Type.String(),
  version: Type.Integer({ description: 'Counts up with each change of what it says.' }),
  steps: Whole,
  onFailure: Type.Enum(FAILURE_POLICIES, { type: 'string' }),
  running: Type.Enum(RUNNING_POLICIES, { type: 'string' }),
  createdAt: Time,
  createdBy: Type.String(),
};

/** One version of a definition as the API shows it. */
export const WorkflowDefinitionView = Type.Object(
  {
    ...DEFINITION_VIEW,
    newest: Type.Boolean({ description: 'Whether starts without a version take this one.' }),
    versions: Type.Array(Type.Integer(), {
      description: 'The versions that are kept, the newest first; at most 1,000.',
    }),
    jobs: Type.Unsafe<Record<string, Step>>({
      type: 'object',
      additionalProperties: WorkflowStep,
      description: 'The steps by their names, as they were defined.',
    }),
  },
  { title: 'WorkflowDefinition' },
);

/** One page of definitions by name. */
export const WorkflowDefinitionPage = page(
  'WorkflowDefinitionPage',
  Type.Object(DEFINITION_VIEW, { title: 'ListedWorkflowDefinition' }),
);

/** Which version of a definition to read. */
export const WorkflowDefinitionQuery = strict({ version: Type.Optional(DefinitionVersion) });

/** Something that has happened, which steps of a workflow wait for. */
export const WorkflowEvent = strict(
  { event: Name, payload: Type.Optional(Json) },
  { title: 'WorkflowEvent', examples: [{ event: 'paid', payload: { amount: 42 } }] },
);

/** How a workflow is submitted again. */
export const WorkflowRerun = strict(
  { key: Type.Optional(line(512)) },
  { title: 'WorkflowRerun', examples: [{ key: 'publish-42-again' }] },
);

/** Which steps run again. */
export const WorkflowRetry = strict(
  { from: Type.Optional(StepName) },
  { title: 'WorkflowRetry', examples: [{ from: 'render' }] },
);
