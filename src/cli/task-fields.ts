import { type Command, InvalidArgumentError, Option } from 'commander';
import type { TaskChanges } from '../client/tasks.js';
import type { Duration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { Delivery, Labels, RetryInput } from '../core/job.js';
import type { Cli } from './cli.js';
import { readJsonInput } from './json-input.js';
import { durationText, given, label, NONE, orNone, wholeNumber } from './option-values.js';

/** The fields of a task's definition as options: of `task define`, which gives all, and of `task set`, which changes some. */

type None = typeof NONE;

/** What the options say; `none` takes a field back to its default, which only `task set` offers. */
export interface FieldOptions {
  readonly description?: string;
  readonly handler?: string;
  readonly queue?: string;
  readonly priority?: number | None;
  readonly timeout?: Duration | None;
  readonly maxAttempts?: number;
  readonly retry?: RetryInput | None;
  readonly delivery?: Delivery | None;
  readonly requires?: Labels | None;
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

function labelOrNone(text: string, previous: Labels | None | undefined): Labels | None {
  return text === NONE ? NONE : label(text, previous === NONE ? undefined : previous);
}

/** Adds the options of the fields; those of a change take `none`. */
export function addFieldOptions(command: Command, isChange: boolean): Command {
  const or = <T>(parse: (text: string) => T): ((text: string) => T | None) =>
    isChange ? orNone(parse) : parse;
  const deliveries = ['at-least-once', 'at-most-once', ...(isChange ? [NONE] : [])];
  return command
    .option('--description <text>', 'what it is for')
    .option('--handler <name>', 'the handler that runs it (default: the one of its name)')
    .option('--queue <name>', 'the queue to wait in')
    .option('--priority <n>', 'from 1 to 9, 9 first', or(wholeNumber(1, 9)))
    .option('--timeout <duration>', 'the longest time an attempt may take', or(durationText))
    .option('--max-attempts <n>', 'attempts in all, the first one included', wholeNumber(1, 1_000))
    .option('--retry <json>', 'the whole rule for retries, with its pauses, as JSON', or(jsonObject))
    .addOption(new Option('--delivery <rule>', 'whether a lost attempt is repeated').choices(deliveries))
    .option(
      '--requires <label>',
      'a label the worker must have, such as region=eu; repeatable',
      isChange ? labelOrNone : (label as typeof labelOrNone),
    )
    .option('--concurrency-key <key>', 'the concurrency key of all its jobs')
    .addOption(
      new Option(
        '--concurrency-key-path <path>',
        'where the concurrency key stands in the payload, such as customer.id',
      ).conflicts('concurrencyKey'),
    )
    .option('--payload-schema <path>', 'a file with a JSON Schema that payloads must fit; - for stdin');
}

/**
 * The fields that the options name, over those of the file. The rule for retries is one field: where only the number of
 * attempts is to be changed, `currentRetry` reads the rest of the rule. Without it, this is a whole definition, in which
 * `none` is a name like others.
 */
export async function fieldsOf(
  cli: Cli,
  options: FieldOptions,
  currentRetry?: () => Promise<RetryInput | undefined>,
): Promise<TaskChanges> {
  const inFile = await readDefinition(cli, options);
  const isUnset = (value: unknown): boolean => currentRetry !== undefined && value === NONE;
  const { handler, concurrencyKeyPath: path, payloadSchema: schema, maxAttempts } = options;
  const named = {
    ...given(options, ['description', 'queue', 'priority', 'timeout', 'retry', 'delivery', 'requires']),
    ...given(options, ['concurrencyKey']),
    ...(handler !== undefined && { target: isUnset(handler) ? NONE : { type: 'handler', name: handler } }),
    ...(path !== undefined && { concurrencyKey: { path } }),
    ...(schema !== undefined && { payloadSchema: isUnset(schema) ? NONE : await readJsonInput(cli, schema) }),
  };
  const changes = Object.entries(named).map(([name, value]) => [name, isUnset(value) ? null : value]);
  const fields = { ...inFile, ...Object.fromEntries(changes) } as TaskChanges;
  if (maxAttempts === undefined) return fields;
  const rule = Object.hasOwn(fields, 'retry') ? fields.retry : await currentRetry?.();
  return { ...fields, retry: { ...rule, maxAttempts } };
}

/** The definition in the file, if one is named. */
async function readDefinition(cli: Cli, { file, payloadSchema }: FieldOptions): Promise<object> {
  if (file === '-' && payloadSchema === '-')
    throw new PunctualError('USAGE', '--file and --payload-schema cannot both read stdin.');
  const read = file === undefined ? {} : await readJsonInput(cli, file);
  if (typeof read !== 'object' || read === null || Array.isArray(read))
    throw new PunctualError('USAGE', `${file} must hold a JSON object: the definition of a task.`);
  return read;
}
