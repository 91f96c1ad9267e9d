import { type Command, InvalidArgumentError, Option } from 'commander';
import { taskPath } from '../client/tasks.js';
import type { Duration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { Delivery, Labels, RetryInput } from '../core/job.js';
import type { TaskDefinition } from '../core/task-definition.js';
import type { TaskView } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { readJsonInput } from './job-submit.js';
import { durationText, given, label, wholeNumber } from './option-values.js';
import { taskDetails, taskTable } from './task-text.js';
import { WIDE, watched } from './watch.js';

const LARGEST_PAGE = 1_000;
const NAME = ['<name>', 'the name of the task'] as const;

/** `punctual task …`: defining, showing and deleting the definitions of tasks. */
export function addTaskCommands(program: Command, cli: Cli): void {
  const task = program.command('task').description('define, show and delete tasks');
  addDefineCommand(task, cli);
  addListCommand(task, cli);
  addGetCommand(task, cli);
  addDeleteCommand(task, cli);
}

interface DefineOptions {
  readonly description?: string;
  readonly handler?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly timeout?: Duration;
  readonly maxAttempts?: number;
  readonly retry?: RetryInput;
  readonly delivery?: Delivery;
  readonly requires?: Labels;
  readonly concurrencyKey?: string;
  readonly concurrencyKeyPath?: string;
  readonly payloadSchema?: string;
  readonly file?: string;
}

/** JSON on the command line. */
function jsonObject(text: string): RetryInput {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The error below says what is expected.
  }
  throw new InvalidArgumentError(
    'Expected JSON such as {"maxAttempts": 6, "backoff": {"base": "1s", "factor": 2, "max": "1m"}}.',
  );
}

function addDefineCommand(task: Command, cli: Cli): void {
  const command = task
    .command('define')
    .description(
      'define a task, or replace its definition; jobs submitted later by its name take what they leave open',
    )
    .argument(...NAME)
    .option(
      '--file <path>',
      'a file with the definition as JSON, to which the options below are added; - for stdin',
    )
    .option('--description <text>', 'what it is for')
    .option('--handler <name>', 'the handler that runs it (default: the one of its name)')
    .option('--queue <name>', 'the queue to wait in')
    .option('--priority <n>', 'from 1 to 9, 9 first', wholeNumber(1, 9))
    .option('--timeout <duration>', 'the longest time an attempt may take', durationText)
    .option('--max-attempts <n>', 'attempts in all, the first one included', wholeNumber(1, 1_000))
    .option('--retry <json>', 'the whole rule for retries, with its pauses, as JSON', jsonObject)
    .addOption(
      new Option('--delivery <rule>', 'whether a lost attempt is repeated').choices([
        'at-least-once',
        'at-most-once',
      ]),
    )
    .option('--requires <label>', 'a label the worker must have, such as region=eu; repeatable', label)
    .option('--concurrency-key <key>', 'the concurrency key of all its jobs')
    .addOption(
      new Option(
        '--concurrency-key-path <path>',
        'where the concurrency key stands in the payload, such as customer.id',
      ).conflicts('concurrencyKey'),
    )
    .option('--payload-schema <path>', 'a file with a JSON Schema that payloads must fit; - for stdin');
  callsServer<DefineOptions>(cli, command, async ({ api, output, options, args }) => {
    const body = { ...(await definitionOf(cli, options)), name: args[0]! };
    const request = { body, signal: cli.interrupted, retry: true };
    const view = await api.request<TaskView>('POST', '/v1/tasks', request);
    output.document(view, () => taskDetails(output, view));
  });
}

/** The definition that the options describe, over that of the file. */
async function definitionOf(cli: Cli, options: DefineOptions): Promise<TaskDefinition> {
  const { file, handler, maxAttempts, retry, concurrencyKeyPath: path, payloadSchema } = options;
  if (file === '-' && payloadSchema === '-')
    throw new PunctualError('USAGE', '--file and --payload-schema cannot both read stdin.');
  const base = file === undefined ? {} : await readJsonInput(cli, file);
  if (typeof base !== 'object' || base === null || Array.isArray(base))
    throw new PunctualError('USAGE', `${file} must hold a JSON object: the definition of a task.`);
  const inFile = base as TaskDefinition;
  const hasRetry = retry !== undefined || maxAttempts !== undefined;
  return {
    ...inFile,
    ...given(options, [
      'description',
      'queue',
      'priority',
      'timeout',
      'delivery',
      'requires',
      'concurrencyKey',
    ]),
    ...(handler !== undefined && { target: { type: 'handler', name: handler } }),
    ...(hasRetry && {
      retry: { ...(retry ?? inFile.retry), ...(maxAttempts !== undefined && { maxAttempts }) },
    }),
    ...(path !== undefined && { concurrencyKey: { path } }),
    ...(payloadSchema !== undefined && { payloadSchema: await readJsonInput(cli, payloadSchema) }),
  };
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
