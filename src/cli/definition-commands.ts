import type { Command } from 'commander';
import { invalid } from '../core/errors.js';
import { NAME_PATTERN } from '../core/job.js';
import { isPlainObject } from '../core/schemas/explain.js';
import type { ListedSchedule } from '../core/wire.js';
import type { ListedWorkflowDefinition, StoredWorkflowDefinition } from '../core/workflow.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { definitionDetails, definitionTable } from './definition-text.js';
import { readJsonInput } from './json-input.js';
import { wholeNumber } from './option-values.js';
import { WIDE, watched } from './watch.js';

const LARGEST_PAGE = 1_000;
/** Schedules among which those are sought that start a definition. */
const MOST_SCHEDULES = 10_000;
const NAME = ['<name>', 'the name of the definition'] as const;

function pathOf(name: string): string {
  return `/v1/workflow-definitions/${encodeURIComponent(name)}`;
}

/** `punctual workflow define|definitions|definition|undefine`: graphs that are kept under names. */
export function addDefinitionCommands(workflow: Command, cli: Cli): void {
  addDefineCommand(workflow, cli);
  addListCommand(workflow, cli);
  addGetCommand(workflow, cli);
  addDeleteCommand(workflow, cli);
}

function addDefineCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('define')
    .description('keep a workflow under its name, to start it by that name and by schedules')
    .argument('<file>', 'a file with the workflow as JSON; - for stdin')
    .option('--name <name>', 'its name; default what the file says');
  callsServer<{ name?: string }>(cli, command, async ({ api, output, options, args }) => {
    const read = await readJsonInput(cli, args[0]!);
    if (!isPlainObject(read)) throw invalid([{ pointer: '', detail: 'must be an object with "jobs"' }]);
    const { name: own, ...body } = read;
    const name = options.name ?? own;
    if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
      const detail = 'must be the name of the definition; the file has none that could be one: give --name';
      throw invalid([{ pointer: '/name', detail }]);
    }
    const defined = await api.request<StoredWorkflowDefinition>('PUT', pathOf(name), {
      ...{ body, signal: cli.interrupted },
      // The same again is no new version.
      retry: true,
    });
    output.document(defined, () => `${defined.name} version ${defined.version}\n`);
  });
}

function addListCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('definitions')
    .description('list the workflows that are kept under names')
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 100)
    .option(...WIDE);
  const show = async ({ api, output, options: { limit } }: ServerCall<{ limit: number }>): Promise<void> => {
    const asked = { signal: cli.interrupted };
    const page = await readPages<ListedWorkflowDefinition>(api, '/v1/workflow-definitions', asked, {
      limit,
      query: {},
    });
    output.document(page, () => definitionTable(output, page.data, cli.now()));
    if (page.next !== null && !output.json) output.note('There are more: use a larger --limit.');
  };
  callsServer<{ limit: number }>(cli, command, watched(command, show));
}

function addGetCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('definition')
    .description('show a workflow that is kept under a name, and draw its graph')
    .argument(...NAME)
    .option(
      '--definition-version <n>',
      'one of its versions; default the newest',
      wholeNumber(1, 2 ** 31 - 1),
    )
    .option(...WIDE);
  callsServer<{ definitionVersion?: number }>(cli, command, async ({ api, output, options, args }) => {
    const { definitionVersion: version } = options;
    const query = version === undefined ? '' : `?version=${version}`;
    const path = pathOf(args[0]!) + query;
    const shown = await api.request<StoredWorkflowDefinition>('GET', path, { signal: cli.interrupted });
    output.document(shown, () => definitionDetails(output, shown));
  });
}

function addDeleteCommand(workflow: Command, cli: Cli): void {
  const command = workflow
    .command('undefine')
    .description(
      'delete a workflow that is kept under a name; what was started from it goes on, and schedules that start it are named',
    )
    .argument(...NAME);
  callsServer(cli, command, async ({ api, output, args }) => {
    const name = args[0]!;
    const ask = { signal: cli.interrupted };
    await api.request('DELETE', pathOf(name), ask);
    const page = await readPages<ListedSchedule>(api, '/v1/schedules', ask, { limit: MOST_SCHEDULES });
    const schedules = page.data.filter(({ workflow }) => workflow === name).map((schedule) => schedule.name);
    output.document({ name, deleted: true, schedules }, () => `deleted ${name}\n`);
    if (schedules.length > 0 && !output.json)
      output.note(`Until ${name} is defined again, these schedules start nothing: ${schedules.join(', ')}.`);
  });
}
