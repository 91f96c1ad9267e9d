import { task } from '../../../src/core/task.js';
import type { Workflow, WorkflowSubmission } from '../../../src/core/workflow.js';
import type { ApiUser } from '../../node-for-tests.js';

/** Submits a workflow. */
export function submitWorkflow(
  user: ApiUser,
  workflow: Omit<WorkflowSubmission, 'name'> & { readonly name?: string },
): Promise<Workflow> {
  return user.get('POST', '/v1/workflows', { body: { name: 'test', ...workflow } });
}

/** The workflow when it has ended. */
export async function workflowEnd(user: ApiUser, { id }: { readonly id: string }): Promise<Workflow> {
  for (;;) {
    const workflow = await user.get<Workflow>('GET', `/v1/workflows/${id}?wait=20s`);
    if (workflow.endedAt !== null) return workflow;
  }
}

/** The states of the steps by their names. */
export function statesOf({ jobs }: Workflow): Record<string, string> {
  return Object.fromEntries(Object.entries(jobs).map(([name, { state }]) => [name, state]));
}

/** A task that fails if its payload says so, and notes that it ran. */
export function notingTask(ran: string[]) {
  return task('note', { retry: { maxAttempts: 1 } }, async (input: { name: string; fails?: boolean }) => {
    ran.push(input.name);
    if (input.fails) throw new Error(`${input.name} fails`);
    return { name: input.name };
  });
}

/** A step of that task. */
export function step(name: string, after: readonly string[] = [], more: object = {}): object {
  const retry = { maxAttempts: 1 };
  return { task: 'note', payload: { name }, retry, ...(after.length > 0 && { after }), ...more };
}
