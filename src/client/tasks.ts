import { withoutUndefined } from '../core/build-submission.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { checkRetry } from '../core/nested-options.js';
import type { AnyTask } from '../core/task.js';
import type { TaskDefinition } from '../core/task-definition.js';
import type { TaskView } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { eachItem, PAGE_OPTIONS, type PageOptions } from './pages.js';

/** What can be changed about a definition; null takes a field back to its default. */
export type TaskChanges = { readonly [K in keyof TaskDefinition]?: TaskDefinition[K] | null };

const DEFINITION: OptionNames<TaskDefinition> = {
  description: true,
  target: true,
  queue: true,
  priority: true,
  retry: true,
  timeout: true,
  delivery: true,
  requires: true,
  concurrencyKey: true,
  payloadSchema: true,
};

/** The definitions of tasks in the cluster. */
export class Tasks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Defines a task, or replaces its definition: jobs that are submitted later by its name take from it what their
   * submission leaves open. Of a task object its options are the definition, and `definition` is more of it. Defining a
   * task again does no harm, so a program may do so whenever it starts.
   */
  define(task: AnyTask | string, definition: TaskDefinition = {}): Promise<TaskView> {
    checkOptions('tasks.define()', definition, DEFINITION);
    checkRetry('tasks.define()', definition.retry);
    const [name, defaults] = typeof task === 'string' ? [task, {}] : [task.name, task.defaults];
    const body = { ...defaults, ...withoutUndefined(definition), name };
    return this.#transport.request('POST', '/v1/tasks', { body, retry: true });
  }

  /** Changes some fields of a definition. */
  change(name: string, changes: TaskChanges): Promise<TaskView> {
    checkOptions('tasks.change()', changes, DEFINITION);
    checkRetry('tasks.change()', changes.retry);
    return this.#transport.request('PATCH', taskPath(name), { body: changes, retry: true });
  }

  /** The definition of a task. */
  get(name: string): Promise<TaskView> {
    return this.#transport.request('GET', taskPath(name));
  }

  /** All definitions by name, read page by page. */
  list(options: PageOptions = {}): AsyncGenerator<TaskView, void, undefined> {
    checkOptions('tasks.list()', options, PAGE_OPTIONS);
    return eachItem(this.#transport, '/v1/tasks', {}, options);
  }

  /** Deletes a definition. Jobs that were submitted before stay as they are. */
  delete(name: string): Promise<void> {
    return this.#transport.request('DELETE', taskPath(name));
  }
}

/** Where a task is found. */
export function taskPath(name: string): string {
  return `/v1/tasks/${encodeURIComponent(name)}`;
}
