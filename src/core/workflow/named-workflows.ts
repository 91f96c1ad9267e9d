import { type FieldError, invalid, MOST_ERRORS, PunctualError, pointerStep } from '../errors.js';
import { JsonText } from '../json-reader.js';
import { isPlainObject } from '../schemas/explain.js';
import { validate } from '../schemas/validate.js';
import { NamedInner } from '../schemas/workflow.js';
import { TimeSlice } from '../time-slice.js';
import { type FailurePolicy, MOST_DEPTH, MOST_STEPS, type RunningPolicy } from '../workflow.js';
import { readInnerText, textOf } from './parse-workflow.js';
import { readSteps, writeSteps } from './stored-graph.js';

/**
 * Steps that start workflows by the names of their definitions. Their graphs are put in when the workflow around them is
 * submitted, so that everything that is checked then covers them, and no later change or deletion reaches what was submitted.
 */

/** A version of a definition. */
export interface FoundDefinition {
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  /** JSON text. */
  readonly jobs: string;
}

/** What graphs are put in with. */
export interface NamedContext {
  readonly maxDepth: number;
  readonly maxBulkBytes: number;
  /** The newest version of a definition, or the one that is asked for; null if it cannot be started. */
  find(name: string, version: number | undefined): Promise<FoundDefinition | null>;
}

type Steps = Readonly<Record<string, unknown>>;

/** The steps with the graphs of the definitions that they name; `around` are the names of the definitions that they are of. */
export async function putDefinitions(
  jobs: Steps,
  context: NamedContext,
  around: readonly string[] = [],
): Promise<Steps> {
  return new Expansion(context).expand(jobs, around, '', 1);
}

/** One expansion, bounded in what it reads over all levels: a few definitions that name each other can be as many as one likes. */
class Expansion {
  private readonly slice = new TimeSlice();
  private readonly known = new Map<string, FoundDefinition | null>();
  private bytes = 0;
  private steps = 0;

  constructor(private readonly context: NamedContext) {}

  async expand(jobs: Steps, around: readonly string[], at: string, depth: number): Promise<Steps> {
    const changed: Record<string, unknown> = {};
    const errors: FieldError[] = [];
    for (const [name, step] of Object.entries(jobs)) {
      if (this.slice.isOver) await this.slice.next();
      if (errors.length > MOST_ERRORS) break;
      // What has another form is refused when it is checked.
      if (!isPlainObject(step) || step.workflow === undefined) continue;
      const pointer = `${at}/jobs${pointerStep(name)}/workflow`;
      const text = await this.textWith(step.workflow, around, pointer, depth, errors);
      if (text !== null) changed[name] = { ...step, workflow: new JsonText(text, Buffer.byteLength(text)) };
    }
    if (errors.length > 0) throw invalid(errors);
    return Object.keys(changed).length === 0 ? jobs : { ...jobs, ...changed };
  }

  /** The text of a workflow that is a step; null if it stays as it is. */
  private async textWith(
    workflow: unknown,
    around: readonly string[],
    pointer: string,
    depth: number,
    errors: FieldError[],
  ): Promise<string | null> {
    const value = await this.read(textOf(workflow));
    if (typeof value === 'string' || (isPlainObject(value) && Object.hasOwn(value, 'definition')))
      return this.named(value, around, pointer, depth, errors);
    if (!isPlainObject(value) || !isPlainObject(value.jobs) || depth >= MOST_DEPTH) return null;
    const jobs = await this.expand(value.jobs, around, pointer, depth + 1);
    return jobs === value.jobs ? null : write({ ...value }, await writeSteps(jobs));
  }

  private async named(
    value: unknown,
    around: readonly string[],
    pointer: string,
    depth: number,
    errors: FieldError[],
  ): Promise<string | null> {
    const form = typeof value === 'string' ? { definition: value } : value;
    const { definition, version, input } = this.check(form, pointer);
    const chain = [...around, definition];
    if (around.includes(definition))
      return refuse(errors, pointer, `the definitions are a circle: ${chain.join(' > ')}`);
    if (depth >= MOST_DEPTH)
      return refuse(errors, pointer, `at most ${MOST_DEPTH} workflows may be inside each other`);
    const found = await this.find(definition, version);
    if (!found) {
      const which = version === undefined ? '' : ` with version ${version}`;
      return refuse(errors, pointer, `there is no workflow definition ${definition}${which}`);
    }
    const { jobs: text, onFailure, running } = found;
    this.bytes += text.length;
    const steps = await readSteps(text);
    this.steps += Object.keys(steps).length;
    if (this.steps > MOST_STEPS || this.bytes > this.context.maxBulkBytes)
      return refuse(errors, pointer, 'the definitions are too large together');
    const jobs = await this.expand(steps, chain, pointer, depth + 1);
    const put = jobs === steps ? text : await writeSteps(jobs);
    return write({ name: definition, onFailure, running, ...(input !== undefined && { input }) }, put);
  }

  private check(form: unknown, pointer: string): NamedForm {
    try {
      return validate(NamedInner, form) as NamedForm;
    } catch (error) {
      if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
      throw invalid(error.errors.map((each) => ({ ...each, pointer: pointer + each.pointer })));
    }
  }

  private async find(name: string, version: number | undefined): Promise<FoundDefinition | null> {
    const key = `${name} ${version ?? ''}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const found = await this.context.find(name, version);
    this.known.set(key, found);
    return found;
  }

  /** What cannot be read is refused when it is checked. */
  private async read(text: string): Promise<unknown> {
    try {
      return await readInnerText(text, this.context);
    } catch (error) {
      if (error instanceof PunctualError) return null;
      throw error;
    }
  }
}

interface NamedForm {
  readonly definition: string;
  readonly version?: number;
  readonly input?: JsonText;
}

/** With the steps as text, which keeps payloads to the letter. */
function write({ jobs: _, ...rest }: Readonly<Record<string, unknown>>, jobs: string): string {
  const fields = Object.entries(rest).map(
    ([name, value]) =>
      `${JSON.stringify(name)}:${value instanceof JsonText ? value.text : JSON.stringify(value)}`,
  );
  return `{${[...fields, `"jobs":${jobs}`].join(',')}}`;
}

function refuse(errors: FieldError[], pointer: string, detail: string): null {
  errors.push({ pointer, detail });
  return null;
}
