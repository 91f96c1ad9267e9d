import type { Command } from 'commander';
import { repeatableWith } from '../client/idempotency-key.js';
import { invalid, PunctualError } from '../core/errors.js';
import { isPlainObject } from '../core/schemas/explain.js';
import type { Workflow, WorkflowStart, WorkflowSubmission } from '../core/workflow.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { awaitEnd } from './end-wait.js';
import { mustHaveOneStdin, readJsonInput, readWorkflowInput } from './json-input.js';
import { durationMs, wholeNumber } from './option-values.js';
import { awaited, failuresOf, requireSuccess } from './workflow-follow.js';
import { workflowDetails } from './workflow-text.js';

interface SubmitOptions {
  readonly definition?: string;
  readonly definitionVersion?: number;
  readonly input?: string;
  readonly payload?: string;
  readonly key?: string;
  readonly idempotencyKey?: string;
  readonly wait?: number | true;
}

/** `punctual workflow submit`. */
export function addSubmitCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('submit')
    .description('submit a workflow, or start one by the name of its definition; prints its id')
    .argument('[file]', 'a file with the workflow as JSON; - for stdin')
    .option('--definition <name>', 'start this definition instead of a file')
    .option(
      '--definition-version <n>',
      'the version of the definition; default the newest',
      wholeNumber(1, 2 ** 31 - 1),
    )
    .option('--input <json>', 'what {"$from": "input.…"} in its payloads means: JSON, @file, or - for stdin')
    .option('--payload <json>', 'the same as --input')
    .option('--key <key>', 'the same key again gives the same workflow')
    .option(
      '--idempotency-key <key>',
      'the same command with the same key within 24 hours submits nothing more, and prints the same id',
    )
    .option('--wait [duration]', 'wait until it has ended, at most this long', durationMs);
  callsServer<SubmitOptions>(cli, command, async ({ api, output, options, args }) => {
    const { key, idempotencyKey, wait } = options;
    const input = await readWorkflowInput(cli, options);
    const body = {
      ...(await whatToSubmit(cli, args[0], options)),
      ...(input !== undefined && { input }),
      ...(key !== undefined && { key }),
    };
    const submitted = await api.request<Workflow>('POST', '/v1/workflows', {
      body,
      signal: cli.interrupted,
      // With a key the request can be repeated safely if its answer is lost.
      retry: body.key !== undefined,
      ...repeatableWith(idempotencyKey, undefined),
    });
    if (wait === undefined) return output.document(submitted, () => `${submitted.id}\n`);
    if (!output.json) output.note(`submitted ${submitted.id}`);
    const ended = await awaitEnd(cli, api, awaited(submitted.id), wait === true ? null : wait);
    const failures = await failuresOf(api, cli, ended);
    output.document(ended, () => workflowDetails(output, ended, cli.now(), failures));
    requireSuccess(ended, failures);
  });
}

/** The workflow of a file, or the start of a definition. */
async function whatToSubmit(
  cli: Cli,
  file: string | undefined,
  { definition, definitionVersion: version, input, payload }: SubmitOptions,
): Promise<WorkflowSubmission | WorkflowStart> {
  if ((file === undefined) === (definition === undefined))
    throw new PunctualError('USAGE', 'Give either a file or --definition.');
  if (definition !== undefined) return { definition, ...(version !== undefined && { version }) };
  if (version !== undefined) throw new PunctualError('USAGE', '--definition-version goes with --definition.');
  mustHaveOneStdin(file, input, payload);
  return readWorkflow(cli, file!);
}

async function readWorkflow(cli: Cli, path: string): Promise<WorkflowSubmission> {
  const read = await readJsonInput(cli, path);
  if (!isPlainObject(read))
    throw invalid([{ pointer: '', detail: 'must be an object with "name" and "jobs"' }]);
  return read as unknown as WorkflowSubmission;
}
