import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, PunctualError } from '../core/errors.js';
import type { AnyTask } from '../core/task.js';

/**
 * Whether a value was made by `task()`. Told by its shape, because a module may bring a copy of the package of
 * its own.
 */
export function isTask(value: unknown): value is AnyTask {
  if (typeof value !== 'object' || value === null) return false;
  const { name, defaults, handler } = value as Partial<AnyTask>;
  return typeof name === 'string' && typeof defaults === 'object' && typeof handler === 'function';
}

/** Every task that the modules export, by name; two different ones of the same name are a mistake. */
export async function loadTasks(folder: string, modules: readonly string[]): Promise<AnyTask[]> {
  const tasks = new Map<string, AnyTask>();
  for (const module of modules) {
    const found = Object.values(await load(folder, module)).filter(isTask);
    if (found.length === 0) {
      throw new PunctualError(
        'USAGE',
        `${module} exports no task; export what \`task(name, handler)\` returns.`,
      );
    }
    for (const task of found) {
      const known = tasks.get(task.name);
      if (known !== undefined && known !== task) {
        throw new PunctualError(
          'USAGE',
          `The task ${task.name} of ${module} is exported twice; rename one of them.`,
        );
      }
      tasks.set(task.name, task);
    }
  }
  return [...tasks.values()];
}

async function load(folder: string, module: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(resolve(folder, module)).href);
  } catch (error) {
    throw new PunctualError('USAGE', `The module ${module} cannot be loaded: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}
