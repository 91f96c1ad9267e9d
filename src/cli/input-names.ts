import type { Argument, Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { InputError } from './failure.js';

/**
 * The API tells which field of a request is wrong. People at a terminal have written no request but options and
 * arguments, so errors name these.
 */

/** Options that are not called like the field they fill. */
const ALIASES: Readonly<Record<string, string>> = {
  keyConcurrency: 'perKey',
  labels: 'label',
  origins: 'origin',
  targetArgs: 'arg',
  targetArtifact: 'exec',
  targetArtifactTimeout: 'artifactTimeout',
  targetBody: 'data',
  targetCommand: 'command',
  targetEnv: 'env',
  targetHeaders: 'header',
  targetIsolation: 'isolation',
  targetLimits: 'limit',
  targetMethod: 'http',
  targetName: 'handler',
  targetUrl: 'http',
};

/** Fields around others that the command line does not know. */
const WRAPPERS = new Set(['retry', 'filter']);

/** An argument as the help of its command writes it. */
export function inputOfArgument(argument: Argument): string {
  return `<${argument.name()}>`;
}

/** What was typed for the field that a JSON pointer leads to; null for a field that the command has no input for. */
export function inputOf(command: Command, pointer: string): string | null {
  const steps = pointer.split('/').slice(1);
  if (WRAPPERS.has(steps[0] ?? '')) steps.shift();
  const options = new Map(
    command.options
      .filter((option) => !readsFile(command) || isGiven(command, option.attributeName()))
      .map((option) => [option.attributeName(), option]),
  );
  for (let length = Math.min(steps.length, 2); length > 0; length -= 1) {
    const field = camelCase(steps.slice(0, length));
    const option = options.get(namedSo(command, ALIASES[field] ?? field));
    const argument = command.registeredArguments.find((each) => each.name() === field);
    const input = option ? (option.long ?? option.flags) : argument && inputOfArgument(argument);
    if (input === undefined) continue;
    const rest = steps.slice(length);
    return rest.length === 0 ? input : `${input} (/${rest.join('/')})`;
  }
  return null;
}

/** The input of a workflow has two names: the one that was typed. */
function namedSo(command: Command, field: string): string {
  const other = field === 'payload' ? 'input' : field === 'input' ? 'payload' : field;
  return !isGiven(command, field) && isGiven(command, other) ? other : field;
}

/** Whether a field that no option was given for stands in a file. */
function readsFile(command: Command): boolean {
  const place = command.registeredArguments.findIndex((argument) => argument.name() === 'file');
  return (place >= 0 && command.args[place] !== undefined) || isGiven(command, 'file');
}

function isGiven(command: Command, option: string): boolean {
  return command.getOptionValueSource(option) === 'cli';
}

function camelCase([first = '', ...rest]: readonly string[]): string {
  return first + rest.map((step) => step.slice(0, 1).toUpperCase() + step.slice(1)).join('');
}

/** The error with what `inputAt` says was typed instead of the fields of the request; anything else as it is. */
export function nameInputs(thrown: unknown, inputAt: (pointer: string) => string | null): unknown {
  if (!(thrown instanceof PunctualError) || thrown.errors.length === 0) return thrown;
  const { code, message, cause, retryAfter, quota, hint } = thrown;
  const errors = thrown.errors.map((error: InputError): InputError => {
    const input = error.input ?? inputAt(error.pointer);
    return input === null ? error : { ...error, input };
  });
  const [first] = errors;
  const isNamed = first?.input !== undefined && message.startsWith(`${first.pointer}: `);
  const detail = isNamed ? first.input + message.slice(first.pointer.length) : message;
  return new PunctualError(code, detail, {
    ...{ cause, errors, hint },
    ...(retryAfter !== undefined && { retryAfter }),
    ...(quota && { quota }),
  });
}
