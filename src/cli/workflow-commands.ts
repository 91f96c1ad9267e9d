import type { Command } from 'commander';
import { repeatableWith } from '../client/idempotency-key.js';
import { queryText } from '../client/pages.js';
import { PunctualError } from '../core/errors.js';
import { printable } from '../core/paint.js';
import type { ListedWorkflow, Workflow, WorkflowAfterEvent } from '../core/workflow.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { addDefinitionCommands } from './definition-commands.js';
import { follow } from './end-wait.js';
import { type DrawnStep, drawGraph, toDot, toMermaid } from './graph-drawing.js';
import { readPayload } from './json-input.js';
import { given, wholeNumber } from './option-values.js';
import type { Output } from './output.js';
import { WIDE, watched } from './watch.js';
import { awaited, failuresOf, requireSuccess, workflowPath } from './workflow-follow.js';
import { addSubmitCommand } from './workflow-submit.js';
import {
  criticalPathLine,
  eventLine,
  unexpectedEvent,
  waitLines,
  workflowDetails,
  workflowLine,
  workflowTable,
} from './workflow-text.js';
import { addWhyCommand } from './workflow-why.js';

const ID = ['<id>', 'the id of the workflow'] as const;
const LARGEST_PAGE = 1_000;

/** `punctual workflow …`: submitting, showing and controlling workflows. */
export function addWorkflowCommands(program: Command, cli: Cli): void {
  const workflow = program.command('workflow').description('submit, show and control workflows');
  addSubmitCommand(workflow, cli);
  addListCommand(workflow, cli);
  addGetCommand(workflow, cli);
  addWatchCommand(workflow, cli);
  addGraphCommand(workflow, cli);
  addRetryCommand(workflow, cli);
  addRerunCommand(workflow, cli);
  addHoldCommands(workflow, cli);
  addCancelCommand(workflow, cli);
  addWhyCommand(workflow, cli);
  addEventCommand(workflow, cli);
  addDefinitionCommands(workflow, cli);
}

interface ListOptions {
  readonly state?: string;
  readonly name?: string;
  readonly key?: string;
  readonly definition?: string;
  readonly schedule?: string;
  readonly limit: number;
}

function addListCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('list')
    .description('list workflows, newest first')
    .option('--state <states>', 'only those in these states, separated by commas')
    .option('--name <name>', 'only those of this name')
    .option('--key <key>', 'only the one with this key')
    .option('--definition <name>', 'only those that were started from this definition')
    .option('--schedule <name>', 'only those that this schedule started')
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 50)
    .option(...WIDE);
  const show = async ({ api, output, options }: ServerCall<ListOptions>): Promise<void> => {
    const { limit } = options;
    const listing = { limit, query: given(options, ['state', 'name', 'key', 'definition', 'schedule']) };
    const page = await readPages<ListedWorkflow>(api, '/v1/workflows', { signal: cli.interrupted }, listing);
    output.document(page, () => workflowTable(output, page.data, cli.now()));
    if (page.next !== null && !output.json) output.note('There are more: use a larger --limit.');
  };
  callsServer<ListOptions>(cli, command, watched(command, show));
}

interface GetOptions {
  readonly include?: string;
}

function addGetCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('get')
    .description('show one workflow and its steps')
    .argument(...ID)
    .option('--include <parts>', 'attempts: show when each step could run, and when its attempts ran')
    .option(...WIDE);
  const show = async ({ api, output, args, options }: ServerCall<GetOptions>): Promise<void> => {
    const path = workflowPath(args[0]!) + queryText({ include: options.include });
    const shown = await api.request<Workflow>('GET', path, { signal: cli.interrupted });
    const failures = output.json ? new Map() : await failuresOf(api, cli, shown);
    output.document(shown, () => workflowDetails(output, shown, cli.now(), failures));
  };
  callsServer(cli, command, watched(command, show));
}

function addWatchCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('watch')
    .description('draw a workflow again and again until it has ended; exits 3 when it ends unsuccessfully')
    .argument(...ID);
  callsServer(cli, command, async ({ api, output, args }) => {
    const signal = AbortSignal.any([cli.interrupted, cli.readerGone]);
    const isScreen = cli.stdout.isTTY === true && !output.json;
    if (isScreen) output.redraw();
    let last = '';
    let seen: Workflow | undefined;
    for await (seen of follow<Workflow>(api, awaited(args[0]!), signal)) {
      const line = workflowLine(seen);
      const text = isScreen ? `${line}\n\n${drawWorkflow(seen, output)}` : line;
      if (text === last) continue;
      last = text;
      output.document(seen, () =>
        isScreen ? text : `${new Date(cli.now()).toISOString()}  ${printable(text)}\n`,
      );
    }
    requireSuccess(seen!);
  });
}

interface GraphOptions {
  readonly dot?: boolean;
  readonly mermaid?: boolean;
}

function addGraphCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('graph')
    .description('draw the graph of a workflow with the states of its steps')
    .argument(...ID)
    .option('--dot', 'print it in the language of Graphviz')
    .option('--mermaid', 'print it in the language of Mermaid')
    .option(...WIDE);
  const show = async ({ api, output, options, args }: ServerCall<GraphOptions>): Promise<void> => {
    if (options.dot && options.mermaid)
      throw new PunctualError('USAGE', 'Give --dot or --mermaid, not both.');
    const shown = await api.request<Workflow>('GET', workflowPath(args[0]!), { signal: cli.interrupted });
    const steps = stepsOf(shown);
    output.document(shown, () => {
      if (options.dot) return toDot(shown.name, steps);
      return options.mermaid ? toMermaid(steps) : drawWorkflow(shown, output);
    });
  };
  callsServer<GraphOptions>(cli, command, watched(command, show));
}

/** The graph, and below it what the states of the steps do not show. */
function drawWorkflow(workflow: Workflow, { screen }: Output): string {
  const hold = workflow.held ? 'on hold: no step starts\n' : '';
  const waits = waitLines(workflow, screen.width);
  return `${drawGraph(stepsOf(workflow), screen)}${hold}${waits}${criticalPathLine(workflow, screen.width)}`;
}

/** The steps with their edges, and one from whatever added them if no other leads there. */
function stepsOf({ jobs }: Workflow): DrawnStep[] {
  return Object.entries(jobs).map(([name, { state, after, runIf, addedBy }]) => {
    const step = { name, state, after, runIf };
    if (addedBy === null) return step;
    const isBelow = after.some((parent) => parent === addedBy || jobs[parent]?.addedBy === addedBy);
    return isBelow ? step : { ...step, after: [addedBy, ...after], adder: addedBy };
  });
}

function addRetryCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('retry')
    .description('run the failed steps of a workflow again, and what depends on them')
    .argument(...ID)
    .option('--from <step>', 'run this step and everything behind it again, whatever became of it');
  callsServer<{ from?: string }>(cli, command, async ({ api, output, options: { from }, args }) => {
    const body = { ...(from !== undefined && { from }) };
    const changed = await api.request<Workflow>('POST', `${workflowPath(args[0]!)}/retry`, {
      body,
      signal: cli.interrupted,
    });
    output.document(changed, () => `${changed.id}  ${workflowLine(changed)}\n`);
  });
}

interface RerunOptions {
  readonly key?: string;
  readonly idempotencyKey?: string;
}

function addRerunCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('rerun')
    .description('submit a workflow again as it was submitted, as a new one; prints its id')
    .argument(...ID)
    .option('--key <key>', 'the key of the new workflow; the same key again gives the same workflow')
    .option(
      '--idempotency-key <key>',
      'the same command with the same key within 24 hours submits nothing more, and prints the same id',
    );
  callsServer<RerunOptions>(cli, command, async ({ api, output, options, args }) => {
    const { key, idempotencyKey } = options;
    const submitted = await api.request<Workflow>('POST', `${workflowPath(args[0]!)}/rerun`, {
      body: { ...(key !== undefined && { key }) },
      signal: cli.interrupted,
      retry: key !== undefined,
      ...repeatableWith(idempotencyKey, undefined),
    });
    output.document(submitted, () => `${submitted.id}\n`);
  });
}

const HOLD_VERBS = {
  hold: 'let no step of a workflow start until it is released; running steps finish',
  release: 'let everything start that would have started while a workflow was on hold',
};

function addHoldCommands(workflow: Command, cli: Cli): void {
  for (const [verb, description] of Object.entries(HOLD_VERBS)) {
    const command = workflow
      .command(verb)
      .description(description)
      .argument(...ID);
    callsServer(cli, command, async ({ api, output, args }) => {
      const request = { signal: cli.interrupted };
      const changed = await api.request<Workflow>('POST', `${workflowPath(args[0]!)}/${verb}`, request);
      output.document(changed, () => `${changed.id}  ${workflowLine(changed)}\n`);
    });
  }
}

function addCancelCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('cancel')
    .description('cancel a workflow: running steps are told to stop, the others never start')
    .argument(...ID);
  callsServer(cli, command, async ({ api, output, args }) => {
    const changed = await api.request<Workflow>('POST', `${workflowPath(args[0]!)}/cancel`, {
      signal: cli.interrupted,
    });
    output.document(changed, () => `${changed.id}  ${workflowLine(changed)}\n`);
  });
}

function addEventCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('event')
    .description('tell a workflow of an event that a step waits for; the first one of a name counts')
    .argument(...ID)
    .argument('<event>', 'the name of the event')
    .option('--payload <json>', 'the result of the step: JSON, @file, or - for stdin');
  callsServer<{ payload?: string }>(cli, command, async ({ api, output, options, args }) => {
    const payload = await readPayload(cli, options.payload);
    const body = { event: args[1]!, ...(payload !== undefined && { payload }) };
    const request = { body, signal: cli.interrupted, retry: true };
    const changed = await api.request<WorkflowAfterEvent>(
      'POST',
      `${workflowPath(args[0]!)}/events`,
      request,
    );
    const told = eventLine(changed.event);
    output.document(changed, () => `${changed.id}  ${told}; ${workflowLine(changed)}\n`);
    if (!changed.event.expected && !output.json) output.note(unexpectedEvent(changed.event));
  });
}
