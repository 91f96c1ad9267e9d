import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Duration, parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import {
  type ExecLimits,
  type ExecTarget,
  ISOLATIONS,
  type Isolation,
  type SecretReference,
} from '../core/job.js';
import { secretIn } from './http-options.js';
import { durationText, several } from './option-values.js';

/** The options of a command that can make an exec target. */
export interface ExecOptions {
  readonly exec?: string;
  readonly artifactTimeout?: Duration;
  readonly command?: string;
  readonly arg?: readonly string[];
  readonly env?: Readonly<Record<string, string | SecretReference>>;
  readonly limit?: ExecLimits;
  readonly isolation?: Isolation;
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};
const SIZES: readonly string[] = ['memory', 'disk', 'output'];
const COUNTS: readonly string[] = ['files', 'processes'];
const LIMITS = 'cpuTime, cpus, memory, disk, output, files or processes';

/** Adds `--exec`, `--command` and what goes with them. */
export function addExecOptions(command: Command): void {
  command
    .option('--exec <artifact>', 'run an uploaded binary instead of a task: an id, NAME or NAME@VERSION')
    .option(
      '--artifact-timeout <duration>',
      'how long it waits, from when it is due, for an artifact that is not uploaded yet',
      durationText,
    )
    .option('--command <program>', "run a program of the worker's machine, where the operator allows it")
    .option('--arg <text>', 'an argument of the program; repeatable', several)
    .option(
      '--env <variable>',
      `a variable of the program, such as REGION=eu, or a secret: 'KEY={"$secret": "stripe"}'; repeatable`,
      variable,
    );
  addIsolationOptions(command);
}

/** Adds `--limit` and `--isolation`, which workers have, too. */
export function addIsolationOptions(command: Command): void {
  command
    .option(
      '--limit <limit>',
      `what a program may use, such as memory=256MiB, cpuTime=90s, files=64; one of ${LIMITS}; repeatable`,
      limit,
    )
    .addOption(
      new Option('--isolation <level>', 'how programs are kept apart from the machine').choices(ISOLATIONS),
    );
}

function variable(text: string, previous: ExecOptions['env'] | undefined): NonNullable<ExecOptions['env']> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Expected NAME=value, such as REGION=eu.');
  const value = text.slice(at + 1);
  const secret = secretIn(value);
  return { ...previous, [text.slice(0, at)]: secret === null ? value : { $secret: secret } };
}

/** Collects limits. */
function limit(text: string, previous: ExecLimits | undefined): ExecLimits {
  const at = text.indexOf('=');
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  return { ...previous, [name]: limitValue(name, value) };
}

function limitValue(name: string, text: string): number | string {
  if (SIZES.includes(name)) return bytes(text);
  const number = text === '' ? Number.NaN : Number(text);
  if (COUNTS.includes(name) && Number.isSafeInteger(number) && number > 0) return number;
  if (name === 'cpus' && number > 0 && Number.isFinite(number)) return number;
  if (name === 'cpuTime' && (parseDuration(text) ?? 0) > 0) return text;
  throw new InvalidArgumentError(
    `Expected NAME=value, such as memory=256MiB or cpuTime=90s, with one of ${LIMITS}.`,
  );
}

function bytes(text: string): number {
  const [, number, unit = ''] = /^(\d{1,15})(KiB|MiB|GiB|TiB)?$/.exec(text) ?? [];
  const value = Number(number) * UNITS[unit]!;
  if (Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError('Expected a size, such as 65536, 256MiB or 2GiB.');
}

/** The target that the options describe; undefined without `--exec` and `--command`. */
export function execTargetOf(options: ExecOptions): ExecTarget | undefined {
  const { exec: artifact, artifactTimeout, command, arg: args, env, limit: limits, isolation } = options;
  if (artifactTimeout !== undefined && artifact === undefined)
    throw new PunctualError('USAGE', '--artifact-timeout needs --exec.');
  if (artifact === undefined && command === undefined) {
    const given = Object.entries({ arg: args, env, limit: limits, isolation }).find(
      ([, value]) => value !== undefined,
    );
    if (given) throw new PunctualError('USAGE', `--${given[0]} needs --exec or --command.`);
    return undefined;
  }
  if (artifact !== undefined && command !== undefined) {
    throw new PunctualError('USAGE', 'Give --exec or --command, not both.');
  }
  return {
    type: 'exec',
    ...(artifact === undefined ? { command: command! } : { artifact }),
    ...(artifactTimeout !== undefined && { artifactTimeout }),
    ...(args && { args }),
    ...(env && { env }),
    ...(limits && { limits }),
    ...(isolation && { isolation }),
  };
}
