import type { AnyTask } from '../../core/task.js';
import type { WorkerOptions } from '../worker-options.js';
import { ExecRunner } from './exec.js';
import { HandlerRunner } from './handler.js';
import { HttpRunner } from './http.js';
import type { Runner } from './runner.js';

/** The runners of a worker: for the handlers of its tasks, and for the other targets that it is to serve. */
export function runnersOf(tasks: readonly AnyTask[], { targets = ['handler'] }: WorkerOptions): Runner[] {
  const handlers = new HandlerRunner(tasks);
  const runsHandlers = handlers.tasks.length > 0 || targets.includes('handler') || targets.length === 0;
  return [
    ...(runsHandlers ? [handlers] : []),
    ...(targets.includes('http') ? [new HttpRunner()] : []),
    ...(targets.includes('exec') ? [new ExecRunner()] : []),
  ];
}
