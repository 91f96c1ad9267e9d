import {
  type AnyTaskOrName,
  buildSubmission,
  checksInput,
  commonPart,
  isTarget,
  mustBeTask,
  type SubmitOptions,
  type TaskOrName,
  withInput,
} from '../build-submission.js';
import type { Duration } from '../duration.js';
import { invalid, PunctualError, pointerStep } from '../errors.js';
import { type JobSubmission, NAME_PATTERN, NAME_RULE } from '../job.js';
import { checkOptions, type OptionNames } from '../known-options.js';
import { checkRetry } from '../nested-options.js';
import type { TaskDefaults } from '../task.js';
import { TASK_DEFAULTS } from '../task.js';
import {
  type EventWait,
  type FailurePolicy,
  INPUT,
  type RunIf,
  type RunningPolicy,
  STEP_NAME_FORM,
  STEP_NAME_PATTERN,
  type StepAddition,
  type WorkflowStep,
  type WorkflowStepView,
  type WorkflowSubmission,
} from '../workflow.js';
import { type Given, otherWorkflow, type Reference, referenceTo, writeInput } from './result-reference.js';

/** Where a step stands in its workflow. */
export interface StepPlace {
  /** The name of the step; default that of its task, with a number where it is taken. */
  readonly name?: string;
  /** The steps that must have ended before; those whose results the input holds need not be named. */
  readonly after?: readonly AnyStep[];
  /** When the step runs, decided when all of those have ended; default `all-succeeded`. */
  readonly runIf?: RunIf;
}

/** Options of a step; the defaults are those of its task, then those of the server. */
export interface StepOptions extends TaskDefaults, StepPlace {
  /** How long after the steps before it the step is due, e.g. `5s`. */
  readonly delay?: Duration;
  /** Jobs of the same key run one after another, or as many at once as `keyConcurrency` of their queue allows. */
  readonly concurrencyKey?: string;
  /** The step fails if it has not started by this time. */
  readonly startBefore?: Date | string;
  /** Whether the step waits until it is released. */
  readonly hold?: boolean;
}

/** How a workflow behaves. */
export interface WorkflowOptions {
  /** What the failure of a step means for the others; default `continue`: they go on by their `runIf`. */
  readonly onFailure?: FailurePolicy;
  /** What becomes of running steps when a failure stops the workflow; default `finish`. */
  readonly running?: RunningPolicy;
}

const PLACE: OptionNames<StepPlace> = { name: true, after: true, runIf: true };
const STEP_OPTIONS: OptionNames<StepOptions> = {
  ...TASK_DEFAULTS,
  ...PLACE,
  delay: true,
  concurrencyKey: true,
  startBefore: true,
  hold: true,
};
const WORKFLOW_OPTIONS: OptionNames<WorkflowOptions> = { onFailure: true, running: true };
const SPAWN_OPTIONS: OptionNames<SpawnOptions> = { join: true };

/** A step of a workflow that is being built. */
export interface Step<Output> {
  readonly name: string;
  /** The result, to be passed on to later steps: `w.run(B, { page: a.result.page })` also puts B after a. */
  readonly result: Reference<Output>;
}

/** A step of any result. */
export interface AnyStep {
  readonly name: string;
}

/** The input of a step as an argument; optional if the task's input may be undefined. */
export type StepArguments<Input> = undefined extends Input
  ? [input?: Given<Input>, options?: StepOptions]
  : [input: Given<Input>, options?: StepOptions];

/** What a workflow is built with. */
export interface WorkflowBuilder {
  /** Adds a step that runs a task. */
  run<Output = unknown, Input = unknown>(
    task: TaskOrName<Input, Output>,
    ...rest: StepArguments<NoInfer<Input>>
  ): Step<Output>;
  /** Adds a step that takes no worker: it ends when the time has passed, or with the payload of the event as its result. */
  wait<Output = unknown>(wait: Duration | EventWait, place?: StepPlace): Step<Output>;
  /** Adds a step that starts another workflow and ends when that does; its result names it. */
  workflow<Input>(
    definition: WorkflowDefinition<Input, unknown>,
    ...rest: InnerArguments<NoInfer<Input>>
  ): Step<InnerResult>;
  /** The same for a definition that is stored, by its name: its newest version when the workflow around it is submitted. */
  defined<Input = unknown>(
    definition: WorkflowDefinition<Input, unknown> | string,
    ...rest: DefinedArguments<NoInfer<Input>>
  ): Step<InnerResult>;
}

/** The result of a step that started a workflow which has succeeded. */
export interface InnerResult {
  /** The id of the workflow. */
  readonly workflow: string;
  readonly state: 'succeeded';
}

/** The input of a workflow that is a step; optional if it may be undefined. */
export type InnerArguments<Input> = undefined extends Input
  ? [input?: Input, place?: StepPlace]
  : [input: Input, place?: StepPlace];

/** The same for one that is started by its name: its input may hold results of other steps. */
export type DefinedArguments<Input> = undefined extends Input
  ? [input?: Given<Input>, place?: StepPlace]
  : [input: Given<Input>, place?: StepPlace];

/** Options of a step that a running step adds; a second attempt finds the step by its name. */
export interface AddedStepOptions extends StepOptions {
  readonly name: string;
}

/** Where an added step that waits stands in its workflow. */
export interface AddedStepPlace extends StepPlace {
  readonly name: string;
}

/** What steps are added with to a workflow that runs. */
export interface StepSpawner {
  /** Adds a step that runs a task. */
  run<Output = unknown, Input = unknown>(
    task: TaskOrName<Input, Output>,
    input: Given<NoInfer<Input>>,
    options: AddedStepOptions,
  ): Step<Output>;
  /** Adds a step that takes no worker: it ends when the time has passed, or with the payload of the event as its result. */
  wait<Output = unknown>(wait: Duration | EventWait, place: AddedStepPlace): Step<Output>;
  /** Adds a step that starts another workflow and ends when that does; its result names it. */
  workflow<Input>(
    definition: WorkflowDefinition<Input, unknown>,
    input: NoInfer<Input>,
    place: AddedStepPlace,
  ): Step<InnerResult>;
  /** The same for a definition that is stored, by its name. */
  defined<Input = unknown>(
    definition: WorkflowDefinition<Input, unknown> | string,
    input: Given<NoInfer<Input>>,
    place: AddedStepPlace,
  ): Step<InnerResult>;
  /** A step that the workflow has already, such as the one that runs: added steps may run after it, with its result. */
  step<Output = unknown>(name: string): Step<Output>;
}

/** How steps are added. */
export interface SpawnOptions {
  /** Whether the steps that wait for the one that adds also wait for these; default true. */
  readonly join?: boolean;
}

/** Adds steps to the workflow of the running step. */
export type Spawn = (
  build: (w: StepSpawner) => unknown,
  options?: SpawnOptions,
) => Promise<Readonly<Record<string, WorkflowStepView>>>;

/** What a workflow returns: a step, several of them by names, or nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement returns void.
export type Returned = AnyStep | Readonly<Record<string, AnyStep>> | void;

/** The result of a workflow: that of the step, or of the steps, that its function returns. */
export type ResultOf<R> =
  R extends Step<infer Output>
    ? Output
    : R extends Readonly<Record<string, AnyStep>>
      ? { [Key in keyof R]: R[Key] extends Step<infer Output> ? Output : unknown }
      : undefined;

/** A workflow as the code says it. */
export interface WorkflowDefinition<Input, Output> {
  readonly name: string;
  /** What is sent to start it. Rejects if an input does not fit the schema of its task. */
  build(input: Input): Promise<BuiltWorkflow>;
  /**
   * What is stored for starts by its name: the function is called once, with references to the input of each start. It cannot
   * decide by them: each is an object, whatever the value will be.
   */
  buildDefinition(): Promise<BuiltWorkflow>;
  /** Never set at run time: tells the compiler the type of the result. */
  readonly types?: { readonly output: Output };
}

/** A submission, and the names of the steps that the result of the workflow is made of. */
export interface BuiltWorkflow {
  readonly submission: WorkflowSubmission;
  readonly returned: string | Readonly<Record<string, string>> | null;
}

/**
 * Defines a workflow: a function that adds its steps. It is called at each start, with the input of that start:
 * `workflow('publish', (w, input: { page: string }) => { const a = w.run(render, input); return w.run(upload, { html: a.result.html }); })`
 */
export function workflow<Input = undefined, R extends Returned = void>(
  name: string,
  build: (w: WorkflowBuilder, input: Input) => R,
): WorkflowDefinition<Input, ResultOf<R>>;
export function workflow<Input = undefined, R extends Returned = void>(
  name: string,
  options: WorkflowOptions,
  build: (w: WorkflowBuilder, input: Input) => R,
): WorkflowDefinition<Input, ResultOf<R>>;
export function workflow(
  name: string,
  optionsOrBuild: WorkflowOptions | BuildFunction,
  maybeBuild?: BuildFunction,
): WorkflowDefinition<unknown, unknown> {
  const options = typeof optionsOrBuild === 'function' ? {} : optionsOrBuild;
  const build = typeof optionsOrBuild === 'function' ? optionsOrBuild : maybeBuild;
  if (!NAME_PATTERN.test(name)) {
    throw invalid([{ pointer: '/name', detail: `${JSON.stringify(name)} ${NAME_RULE}` }]);
  }
  checkOptions(`workflow(${JSON.stringify(name)})`, options, WORKFLOW_OPTIONS);
  if (typeof build !== 'function') {
    const detail = `The workflow ${name} has no function that adds its steps; pass one last.`;
    throw new PunctualError('INVALID_REQUEST', detail);
  }
  const buildWith = async (inputOf: (graph: Graph) => unknown): Promise<BuiltWorkflow> => {
    const graph = new Graph();
    const returned = build(graph, inputOf(graph));
    const jobs = await graph.jobs();
    return { submission: { name, jobs, ...options }, returned: graph.namesOf(returned) };
  };
  return Object.freeze({
    name,
    build: (input: unknown) => buildWith(() => input),
    buildDefinition: () => buildWith((graph) => referenceTo({ owner: graph, step: INPUT, path: [] })),
  });
}

/** What is sent to add the steps that the function adds. Rejects if an input does not fit the schema of its task. */
export async function buildAddition(
  build: (w: StepSpawner) => unknown,
  options: SpawnOptions = {},
): Promise<StepAddition> {
  checkOptions('spawn()', options, SPAWN_OPTIONS);
  const graph = new Graph('named');
  build(graph);
  const jobs = await graph.jobs();
  if (Object.keys(jobs).length === 0)
    throw invalid([{ pointer: '/jobs', detail: 'the function that was given to spawn() added no step' }]);
  return { jobs, ...options };
}

type BuildFunction = (w: WorkflowBuilder, input: unknown) => Returned;

/** A step that was added; its submission is built when all are there. */
interface AddedStep {
  readonly after: readonly string[];
  readonly runIf: RunIf | undefined;
  readonly build: () => Promise<WorkflowStep> | WorkflowStep;
}

/** The steps that a function adds. */
class Graph implements WorkflowBuilder, StepSpawner {
  readonly #steps = new Map<string, AddedStep>();
  readonly #handles = new Map<unknown, string>();
  /** By the name that steps were called, the number at which the search for a free name goes on. */
  readonly #nextNumbers = new Map<string, number>();
  readonly #names: 'free' | 'named';
  #last: { readonly given: AnyTaskOrName; readonly common: JobSubmission } | null = null;

  /** A name that is made up here may be that of another step of the workflow, or mean another step at the next attempt. */
  constructor(names: 'free' | 'named' = 'free') {
    this.#names = names;
  }

  run<Output>(task: TaskOrName<never, Output>, ...rest: readonly unknown[]): Step<Output> {
    const [input, options = {}] = rest as [input?: unknown, options?: StepOptions];
    checkOptions('run()', options, STEP_OPTIONS);
    checkRetry('run()', options.retry);
    const { name, after, runIf, ...job } = options;
    const { payload, steps } = this.#written(name ?? nameOfCalled(task as AnyTaskOrName), input);
    const given = this.#withoutReferences(task as AnyTaskOrName, steps);
    const build = () => {
      mustBeTask(given);
      // An input that refers to results can be checked only when they are there.
      if (steps.size === 0 && checksInput(given)) return buildSubmission(given, payload, job);
      return withInput(this.#commonPart(given, job), payload);
    };
    return this.#add(name, nameOfCalled(given), { after: this.#edges(after, steps), runIf, build });
  }

  /** What steps of one task share that say nothing else: there may be thousands of them. */
  #commonPart(given: AnyTaskOrName, job: SubmitOptions): JobSubmission {
    if (Object.keys(job).length > 0) return commonPart(given, job);
    if (this.#last?.given !== given) this.#last = { given, common: commonPart(given, job) };
    return this.#last.common;
  }

  /** The input of a step that is to be called so. */
  #written(called: string, input: unknown): ReturnType<typeof writeInput> {
    try {
      return writeInput(input, this);
    } catch (error) {
      return throwAbout(called, error);
    }
  }

  /** A call whose body holds results, as it is sent; adds the steps that these come from. */
  #withoutReferences(given: AnyTaskOrName, steps: Set<string>): AnyTaskOrName {
    if (typeof given !== 'object' || given === null || !isTarget(given)) return given;
    if (given.type === 'exec' || given.body === undefined) return given;
    const { payload: body, steps: referred } = writeInput(given.body, this);
    for (const step of referred) steps.add(step);
    return { ...given, body };
  }

  wait<Output>(wait: Duration | EventWait, place: StepPlace = {}): Step<Output> {
    checkOptions('wait()', place, PLACE);
    const { name, after, runIf } = place;
    const called = typeof wait === 'string' ? 'wait' : wait.event;
    return this.#add(name, called, { after: this.#edges(after, []), runIf, build: () => ({ wait }) });
  }

  workflow<Input>(
    definition: WorkflowDefinition<Input, unknown>,
    input?: Input,
    place: StepPlace = {},
  ): Step<InnerResult> {
    checkOptions('workflow()', place, PLACE);
    const { name, after, runIf } = place;
    const build = async () => ({ workflow: (await definition.build(input as Input)).submission });
    return this.#add(name, definition.name, { after: this.#edges(after, []), runIf, build });
  }

  defined(
    definition: { readonly name: string } | string,
    input?: unknown,
    place: StepPlace = {},
  ): Step<InnerResult> {
    checkOptions('defined()', place, PLACE);
    const { name, after, runIf } = place;
    const called = typeof definition === 'string' ? definition : definition.name;
    const { payload, steps } = this.#written(name ?? called, input);
    const build = () => ({
      workflow: { definition: called, ...(payload !== undefined && { input: payload }) },
    });
    return this.#add(name, called, { after: this.#edges(after, steps), runIf, build });
  }

  step<Output>(name: string): Step<Output> {
    return this.#handle(name);
  }

  /** The steps in the form of the API. */
  async jobs(): Promise<Record<string, WorkflowStep>> {
    const jobs: [string, WorkflowStep][] = [];
    // Few steps are waited for: a promise for each of thousands would cost more than what is built.
    const awaited: Promise<void>[] = [];
    for (const [name, step] of this.#steps) {
      const place = jobs.length;
      const built = builtOf(step);
      if (built instanceof Promise) {
        jobs.push([name, {}]);
        awaited.push(
          built.then(
            (made) => {
              jobs[place] = [name, placed(made, step)];
            },
            (error) => throwAbout(name, error),
          ),
        );
      } else jobs.push([name, placed(built, step)]);
    }
    await Promise.all(awaited);
    return Object.fromEntries(jobs);
  }

  /** The names of the steps that the function returned. */
  namesOf(returned: Returned): BuiltWorkflow['returned'] {
    if (returned === undefined || returned === null) return null;
    const name = this.#handles.get(returned);
    if (name !== undefined) return name;
    return Object.fromEntries(
      Object.entries(returned).map(([key, step]) => [key, this.#nameOf(step as AnyStep)]),
    );
  }

  #add<Output>(given: string | undefined, called: string, step: AddedStep): Step<Output> {
    if (given === undefined && this.#names === 'named') {
      const detail = `give each step that is added a name: a second attempt finds it by that (${called})`;
      throw invalid([{ pointer: '/name', detail }]);
    }
    const name = given ?? this.#freeName(called);
    if (!STEP_NAME_PATTERN.test(name)) {
      throw invalid([{ pointer: '/name', detail: `${JSON.stringify(name)} must be ${STEP_NAME_FORM}` }]);
    }
    if (this.#steps.has(name)) {
      throw invalid([{ pointer: '/name', detail: `the workflow has a step "${name}" already` }]);
    }
    this.#steps.set(name, step);
    return this.#handle(name);
  }

  #handle<Output>(name: string): Step<Output> {
    const result = referenceTo({ owner: this, step: name, path: [] }) as Reference<Output>;
    const handle = Object.freeze({ name, result });
    this.#handles.set(handle, name);
    return handle;
  }

  /** The name of the task, as far as it is one of a step, with a number where it is taken. */
  #freeName(called: string): string {
    const name = called.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(0, 56);
    if (name !== INPUT && !this.#steps.has(name)) return name;
    let number = this.#nextNumbers.get(name) ?? 2;
    while (this.#steps.has(`${name}-${number}`)) number++;
    this.#nextNumbers.set(name, number + 1);
    return `${name}-${number}`;
  }

  #edges(after: readonly AnyStep[] | undefined, referred: Iterable<string>): string[] {
    const named = (after ?? []).map((step) => this.#nameOf(step));
    const steps = [...referred].filter((step) => step !== INPUT);
    return named.length + steps.length < 2 ? [...named, ...steps] : [...new Set([...named, ...steps])];
  }

  #nameOf(step: AnyStep): string {
    const name = this.#handles.get(step);
    if (name === undefined) throw otherWorkflow(String(step?.name));
    return name;
  }
}

/** What is thrown is told like what is rejected: others may be waited for already. */
function builtOf({ build }: AddedStep): Promise<WorkflowStep> | WorkflowStep {
  try {
    return build();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The step with what it waits for. */
function placed(step: WorkflowStep, { after, runIf }: AddedStep): WorkflowStep {
  const made: { -readonly [K in keyof WorkflowStep]: WorkflowStep[K] } = { ...step };
  if (after.length > 0) made.after = after;
  if (runIf !== undefined) made.runIf = runIf;
  return made;
}

/** What a step is called that has no name of its own. */
function nameOfCalled(given: AnyTaskOrName): string {
  if (typeof given === 'string') return given;
  return isTarget(given) ? given.type : given.name;
}

/** Throws the error with pointers that name the step, as the API does. */
function throwAbout(name: string, error: unknown): never {
  if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
  throw invalid(
    error.errors.map((each) => ({ ...each, pointer: `/jobs${pointerStep(name)}${each.pointer}` })),
  );
}
