import { parseDuration } from './duration.js';
import { type FieldError, invalid, pointerStep } from './errors.js';
import { MAX_SECRETS } from './http-target.js';
import type { ExecTarget } from './job.js';
import { checkOptions, type OptionNames } from './known-options.js';

/** The rules of exec targets that their schema does not say. Free of the schemas, because workers load it too. */

/**
 * Variables that a target may not set: those that the worker sets, and those with which the loader of programs, or a shell, runs
 * other code than the program's, which would happen in the tools that keep the program apart, before they do.
 */
const REFUSED_VARIABLES: readonly string[] = [
  'BASHOPTS',
  'BASH_ENV',
  'ENV',
  'GCONV_PATH',
  'GLIBC_TUNABLES',
  'LD_.*',
  'LIBMOUNT_.*',
  'LOCPATH',
  'MALLOC_.*',
  'NLSPATH',
  'PS4',
  'PUNCTUAL_.*',
  'SHELLOPTS',
  'TRACEPARENT',
];

/** The refused variables as a regular expression; Postgres reads it, too. */
export const REFUSED_VARIABLE = `^(${REFUSED_VARIABLES.join('|')})$`;
const REFUSED = new RegExp(REFUSED_VARIABLE);

/** Completes "/target/env/X …". */
export const REFUSED_VARIABLE_RULE = 'is a variable that a target may not set';

/** The rule between the two fields that say what runs. */
export const ARTIFACT_OR_COMMAND = 'give either "artifact" or "command"';

/** The rule of the time that belongs to an artifact. */
export const ARTIFACT_TIMEOUT_RULE = 'belongs to "artifact"';

/** What is wrong with a target whose form is right; pointers count from the target. */
export function mistakesInProgram(target: ExecTarget): FieldError[] {
  const { artifact, artifactTimeout, command, env = {}, limits } = target;
  const errors: FieldError[] = [];
  const wrong = (pointer: string, detail: string) => errors.push({ pointer, detail });
  if ((artifact === undefined) === (command === undefined)) wrong('/artifact', ARTIFACT_OR_COMMAND);
  if (artifactTimeout !== undefined && artifact === undefined)
    wrong('/artifactTimeout', ARTIFACT_TIMEOUT_RULE);
  for (const name of Object.keys(env)) {
    if (REFUSED.test(name)) wrong(`/env${pointerStep(name)}`, REFUSED_VARIABLE_RULE);
  }
  if (limits?.cpuTime !== undefined && parseDuration(limits.cpuTime)! < 1) {
    wrong('/limits/cpuTime', 'must be at least 1ms');
  }
  if (secretsOfProgram(target).length > MAX_SECRETS) {
    wrong('/env', `must name at most ${MAX_SECRETS} different secrets`);
  }
  return errors;
}

/** The names of the secrets that a target refers to, each once. */
export function secretsOfProgram({ env = {} }: ExecTarget): string[] {
  const names = Object.values(env).flatMap((value) => (typeof value === 'string' ? [] : [value.$secret]));
  return [...new Set(names)];
}

/** What a program is, as code says it: a target without its type. */
export type ExecProgram = Omit<ExecTarget, 'type'>;

const PROGRAM: OptionNames<ExecProgram> = {
  artifact: true,
  artifactTimeout: true,
  command: true,
  args: true,
  env: true,
  limits: true,
  isolation: true,
};

/** A program to run, in place of a task: `punctual.submit(exec({ artifact: 'packer@1.4.0' }), { id: 7 })`. */
export function exec(program: ExecProgram): ExecTarget {
  checkOptions('exec()', program, PROGRAM);
  const target: ExecTarget = { type: 'exec', ...program };
  const mistakes = mistakesInProgram(target);
  if (mistakes.length > 0) throw invalid(mistakes);
  return target;
}
