import { PunctualError } from '../../core/errors.js';
import type { JobContext } from '../../core/task.js';
import { type AnyTask, checkInput, type Handler, PermanentError } from '../../core/task.js';
import { normaliseTask, type TaskDefinition } from '../../core/task-definition.js';
import type { Assignment } from '../../core/wire.js';
import type { Runner } from './runner.js';

const DEFAULT_QUEUE = 'default';

/** Runs handlers, which are functions of this process, by the names of their tasks. */
export class HandlerRunner implements Runner {
  readonly target = 'handler';
  readonly runsUserCode = true;
  readonly tasks: readonly string[];
  readonly queues: readonly string[];
  readonly definitions: readonly (TaskDefinition & { readonly name: string })[];
  readonly #tasks: ReadonlyMap<string, AnyTask>;

  constructor(tasks: readonly AnyTask[]) {
    mustBeTasks(tasks);
    this.#tasks = new Map(tasks.map((each) => [each.name, each]));
    this.tasks = [...this.#tasks.keys()];
    this.queues = [...new Set(tasks.map(({ defaults }) => defaults.queue ?? DEFAULT_QUEUE))];
    this.definitions = tasks.map(({ name, defaults }) => ({ ...normaliseTask(defaults), name }));
    if (this.tasks.length < tasks.length) {
      const names = tasks.map((each) => each.name);
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      throw new PunctualError(
        'CONFIGURATION',
        `Two tasks are called ${twice}; a worker needs distinct names.`,
      );
    }
  }

  run(assignment: Assignment, context: JobContext): unknown {
    const { target } = assignment;
    if (target.type !== 'handler') {
      throw new PermanentError(`A ${target.type} target was given to the runner of handlers.`);
    }
    const found = this.#tasks.get(target.name);
    if (!found) {
      throw new PermanentError(
        `This worker has no handler called ${target.name}; it has ${this.tasks.join(', ') || 'none'}.`,
        { code: 'UNKNOWN_HANDLER' },
      );
    }
    // The compiler checks the payload's type where it is submitted; only a schema checks it at run time.
    const handler = found.handler as Handler<unknown, unknown>;
    if (!found.schema) return handler(assignment.payload, context);
    return checked(found, assignment.payload).then((input) => handler(input, context));
  }
}

async function checked(task: AnyTask, payload: unknown): Promise<unknown> {
  try {
    return await checkInput(task, payload);
  } catch (error) {
    if (!(error instanceof PunctualError)) throw error;
    throw new PermanentError(`The payload does not fit the task: ${error.message}`, {
      code: 'INVALID_PAYLOAD',
      cause: error,
    });
  }
}

/** A program without types may pass anything. */
function mustBeTasks(given: unknown): void {
  if (!Array.isArray(given))
    throw new PunctualError('CONFIGURATION', 'worker() takes a list of tasks, such as worker([mail]).');
  const wrong = given.findIndex(
    (each) => typeof each?.name !== 'string' || typeof each.handler !== 'function',
  );
  if (wrong === -1) return;
  const detail = `The item ${wrong} of the list given to worker() is no task; make tasks with task().`;
  throw new PunctualError('CONFIGURATION', detail);
}
