import type { ApiClient } from '../client/api-client.js';
import { PunctualError } from '../core/errors.js';
import type { ListedJob } from '../core/job.js';
import type { Workflow } from '../core/workflow.js';
import { readPages } from './call.js';
import type { Cli } from './cli.js';
import type { Awaited } from './end-wait.js';
import { type Failures, workflowLine } from './workflow-text.js';

/** Where a workflow is found. */
export function workflowPath(id: string): string {
  return `/v1/workflows/${encodeURIComponent(id)}`;
}

/** How the end of a workflow is waited for. */
export function awaited(id: string): Awaited<Workflow> {
  const events = { workflow: id };
  return {
    path: workflowPath(id),
    events,
    hasEnded: ({ state }) => state !== 'running',
    lineOf: workflowLine,
  };
}

/** Throws if the workflow did not succeed, which gives the command an exit code of its own. */
export function requireSuccess({ id, state, jobs }: Workflow, failures?: Failures): void {
  if (state === 'succeeded') return;
  const failed = Object.entries(jobs).find(([, step]) => step.state === 'failed');
  const reason = failed && failures?.get(failed[0]);
  const because = reason ? `: ${reason.message}` : '';
  const why = failed
    ? `: step ${failed[0]} failed${because} (\`punctual job get ${failed[1].id}\` shows more)`
    : '';
  throw new PunctualError('WORKFLOW_UNSUCCESSFUL', `Workflow ${id} ended as ${state}${why}`);
}

/** How many failed steps a person is told the reasons of. */
const MOST_REASONS = 100;

/** Asks why steps of a workflow have failed. */
export async function failuresOf(
  api: ApiClient,
  cli: Cli,
  { id, progress }: Pick<Workflow, 'id' | 'progress'>,
): Promise<Failures> {
  if (progress.failed === 0) return new Map();
  const listing = { limit: MOST_REASONS, query: { workflow: id, state: 'failed,cancelled' } };
  const page = await readPages<ListedJob>(api, '/v1/jobs', { signal: cli.interrupted }, listing);
  return new Map(page.data.flatMap(({ step, error }) => (step === null ? [] : [[step, error]])));
}
