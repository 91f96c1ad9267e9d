import { asPunctualError, PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { TaskDefinition } from '../core/task-definition.js';
import { GrowingPause, pause } from '../transport/pause.js';

const PUBLISH_TIMEOUT_MS = 10_000;

interface PublicationParts {
  readonly gateway: WorkerGateway;
  /** What the code of the worker says about its tasks. */
  readonly tasks: readonly (TaskDefinition & { readonly name: string })[];
  /** The worker's name. */
  readonly publishedBy: string;
  /** Whether to replace what people have defined, too. */
  readonly overwrite: boolean;
  /** Aborts when the worker no longer starts. */
  readonly signal: AbortSignal;
  readonly onWarning: (warning: PunctualError) => void;
}

/**
 * Publishes the tasks of a worker, so that jobs that are submitted by name take what its code says. It waits while no
 * node can serve, as the registration does. Nothing that is refused keeps the worker from working: its jobs run, with
 * the defaults that they have.
 */
export async function publishTasks(parts: PublicationParts): Promise<void> {
  for (const task of parts.tasks) {
    if (!(await publishOne(parts, task))) return;
  }
}

/** False when no other task would be accepted either. */
async function publishOne(
  { gateway, publishedBy, overwrite, signal, onWarning }: PublicationParts,
  task: TaskDefinition & { readonly name: string },
): Promise<boolean> {
  const growing = new GrowingPause(100, 2_000, gateway.triesAtOnce);
  const publication = { ...task, publishedBy, ...(overwrite && { overwrite }) };
  while (!signal.aborted) {
    try {
      await gateway.publish(publication, AbortSignal.any([signal, AbortSignal.timeout(PUBLISH_TIMEOUT_MS)]));
      return true;
    } catch (thrown) {
      if (signal.aborted) return false;
      const error = asPunctualError(thrown);
      if (error.status !== 503) {
        onWarning(notPublished(task.name, error));
        return !REFUSES_ALL.has(error.status);
      }
      onWarning(error);
      await pause(growing.nextMs(error), signal);
    }
  }
  return false;
}

/** The warning about a task that was refused: which one, what is wrong with it, and what follows from that. */
function notPublished(name: string, error: PunctualError): PunctualError {
  const { code, errors } = error;
  const wrong = errors.map(({ pointer, detail }) => `${pointer.slice(1).replaceAll('/', '.')}: ${detail}`);
  const reason = wrong.length === 0 ? error.message : wrong.join('; ');
  const rest = REFUSES_ALL.has(error.status) ? ', nor are those of its other tasks' : '';
  return new PunctualError(
    code,
    `The options of task ${name} are not published${rest}: ${reason.replace(/\.$/, '')}. Jobs that are submitted by its name do not take them.`,
    { cause: error, errors },
  );
}

/** The key may not publish, or the node does not know how. */
const REFUSES_ALL: ReadonlySet<number> = new Set([401, 403, 404]);
