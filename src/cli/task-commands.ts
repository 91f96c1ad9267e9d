import type { Command } from 'commander';
import { taskPath } from '../client/tasks.js';
import type { TaskView } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { requireChange, wholeNumber } from './option-values.js';
import { addFieldOptions, type FieldOptions, fieldsOf } from './task-fields.js';
import { taskDetails, taskTable } from './task-text.js';
import { WIDE, watched } from './watch.js';

const LARGEST_PAGE = 1_000;
const NAME = ['<name>', 'the name of the task'] as const;

/** `punctual task …`: defining, changing, showing and deleting the definitions of tasks. */
export function addTaskCommands(program: Command, cli: Cli): void {
  const task = program.command('task').description('define, change, show and delete tasks');
  addDefineCommand(task, cli);
  addSetCommand(task, cli);
  addListCommand(task, cli);
  addGetCommand(task, cli);
  addDeleteCommand(task, cli);
}

function addDefineCommand(task: Command, cli: Cli): void {
  const command = task
    .command('define')
    .description(
      'define a task, or replace its whole definition (`task set` changes single fields); jobs submitted later by its name take what they leave open',
    )
    .argument(...NAME)
    .option(
      '--file <path>',
      'a file with the definition as JSON, to which the options below are added; - for stdin',
    );
  addFieldOptions(command, false);
  callsServer<FieldOptions>(cli, command, async ({ api, output, options, args }) => {
    const body = { ...(await fieldsOf(cli, options)), name: args[0]! };
    const request = { body, signal: cli.interrupted, retry: true };
    const view = await api.request<TaskView>('POST', '/v1/tasks', request);
    output.document(view, () => taskDetails(output, view));
  });
}

function addSetCommand(task: Command, cli: Cli): void {
  const command = task
    .command('set')
    .description(
      'change fields of a definition; none takes a field back to its default, and what is not named stays as it is',
    )
    .argument(...NAME)
    .option('--file <path>', 'a file with the changes as JSON, in which null stands for none; - for stdin');
  addFieldOptions(command, true);
  callsServer<FieldOptions>(cli, command, async ({ api, output, options, args }) => {
    const path = taskPath(args[0]!);
    const signal = cli.interrupted;
    const body = await fieldsOf(cli, options, async () => {
      return (await api.request<TaskView>('GET', path, { signal })).retry;
    });
    requireChange(body, '--queue, --timeout, --max-attempts, or another field of `--help`');
    const view = await api.request<TaskView>('PATCH', path, { body, signal, retry: true });
    output.document(view, () => taskDetails(output, view));
  });
}

interface ListOptions {
  readonly limit: number;
  readonly after?: string;
}

function addListCommand(task: Command, cli: Cli): void {
  const command = task
    .command('list')
    .description('list the defined tasks by name')
    .option('--limit <n>', 'how many to show at most', wholeNumber(1, LARGEST_PAGE), 100)
    .option('--after <name>', 'begin after this name')
    .option(...WIDE);
  const show = async ({ api, output, options }: ServerCall<ListOptions>): Promise<void> => {
    const { limit, after } = options;
    const listing = { limit, query: { ...(after !== undefined && { after }) } };
    const page = await readPages<TaskView>(api, '/v1/tasks', { signal: cli.interrupted }, listing);
    output.document(page, () => taskTable(output, page.data, cli.now()));
    if (page.next !== null && !output.json) output.note(`There are more: use --after ${page.next}.`);
  };
  callsServer<ListOptions>(cli, command, watched(command, show));
}

function addGetCommand(task: Command, cli: Cli): void {
  const command = task
    .command('get')
    .description('show the definition of a task')
    .argument(...NAME);
  const show = async ({ api, output, args }: ServerCall<object>): Promise<void> => {
    const view = await api.request<TaskView>('GET', taskPath(args[0]!), { signal: cli.interrupted });
    output.document(view, () => taskDetails(output, view));
  };
  callsServer(cli, command, watched(command, show));
}

function addDeleteCommand(task: Command, cli: Cli): void {
  const command = task
    .command('delete')
    .description('delete the definition of a task; jobs that were submitted before stay as they are')
    .argument(...NAME);
  callsServer(cli, command, async ({ api, output, args }) => {
    const name = args[0]!;
    await api.request('DELETE', taskPath(name), { signal: cli.interrupted });
    output.document({ name, deleted: true }, () => `deleted ${name}\n`);
  });
}
