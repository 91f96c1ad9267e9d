import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, PunctualError } from '../core/errors.js';
import type { AnyTask } from '../core/task.js';

/** The modules that `--module` names, and the tasks in them. */

/**
 * Whether a value was made by `task()`. Its shape decides, because a module may import another copy of the package.
 */
function isTask(value: unknown): value is AnyTask {
  if (typeof value !== 'object' || value === null) return false;
  const { name, defaults, handler } = value as Partial<AnyTask>;
  return typeof name === 'string' && typeof defaults === 'object' && typeof handler === 'function';
}

/** All tasks that the modules export; two different tasks of the same name are an error. */
export async function loadTasks(folder: string, modules: readonly string[]): Promise<AnyTask[]> {
  const tasks = new Map<string, AnyTask>();
  for (const module of modules) {
    const found = exportsOf(await load(folder, module)).filter(isTask);
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

/** Everything that a module exports; what CommonJS exports is sometimes found below `default` only. */
function exportsOf(module: Readonly<Record<string, unknown>>): unknown[] {
  const { default: inner } = module;
  const isCommonJs = typeof inner === 'object' && inner !== null && !isTask(inner);
  return [...Object.values(module), ...(isCommonJs ? Object.values(inner) : [])];
}

async function load(folder: string, module: string): Promise<Record<string, unknown>> {
  const path = resolve(folder, module);
  try {
    if (/\.[cm]?tsx?$/.test(path)) await useTsx(path);
    return await import(pathToFileURL(path).href);
  } catch (error) {
    throw new PunctualError('USAGE', `The module ${module} cannot be loaded: ${reasonOf(error)}.`, {
      cause: error,
    });
  }
}

/** What Node says, and for the mistakes of a first module also what to do. */
function reasonOf(error: unknown): string {
  if (isUnreadTypeScript(error)) return NO_TYPESCRIPT;
  if (NOT_STRIPPED.test(messageOf(error))) return `${messageOf(error).trim()}. ${USE_TSX}`;
  return TAKEN_FOR_COMMONJS.test(messageOf(error)) ? `${messageOf(error)}. ${USE_MODULES}` : messageOf(error);
}

/** What Node says about `import` and `export` in a file that its package.json declares to be CommonJS. */
const TAKEN_FOR_COMMONJS = /^(Cannot use import statement outside a module|Unexpected token 'export')/;

const USE_MODULES = 'Write "type": "module" into the package.json, or name the module .mjs or .mts';

/** What Node says about the parts of TypeScript that it cannot just leave out, such as enums. */
const NOT_STRIPPED = /not supported in strip-only mode/;

const USE_TSX = 'Install tsx beside the module, which reads all of TypeScript (npm install --save-dev tsx)';

const NO_TYPESCRIPT =
  `Node ${process.versions.node} does not read TypeScript. Install tsx beside the module ` +
  '(npm install --save-dev tsx), use Node 22.18 or newer, or compile the module and name the result';

/** Whether Node met a TypeScript file that it cannot read, the module itself or one that it imports. */
function isUnreadTypeScript(error: unknown): boolean {
  const { code, message } = error as Partial<NodeJS.ErrnoException>;
  return code === 'ERR_UNKNOWN_FILE_EXTENSION' && /"\.[cm]?tsx?"/.test(message ?? '');
}

/**
 * Has the tsx of the user's project read TypeScript, where it is installed. It comes before Node's own support, so that
 * a module that needs it (for enums, or imports of `.js` that mean `.ts`) does not depend on the version of Node.
 */
async function useTsx(path: string): Promise<void> {
  let loader: string;
  try {
    loader = createRequire(path).resolve('tsx');
  } catch {
    return;
  }
  await import(pathToFileURL(loader).href);
}
