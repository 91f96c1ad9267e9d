import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { ExecTarget } from '../../../core/job.js';
import type { Assignment, SecretsAnswer } from '../../../core/wire.js';
import { Redaction } from '../http/redaction.js';
import { PROGRAM_PATH } from './command-file.js';
import { ExecError } from './exec-error.js';
import { OUTPUT_FOLDER, PAYLOAD_FILE, TOKEN_FILE } from './host/job-folder.js';

/** Shorter lines of a secret tell little, and would make much else unreadable. */
const LEAST_LINE = 16;
/** The most lines of a secret that are looked for: each is, in every line that is printed. */
const MOST_LINES = 128;

/** What a program finds in its environment: what its target says and what it needs to report, and nothing of the worker's. */

interface EnvironmentParts {
  readonly assignment: Assignment;
  readonly target: ExecTarget;
  readonly secrets: SecretsAnswer['values'];
  /** Its folder, as the program sees it. */
  readonly folder: string;
  readonly workerId: string;
  /** Where it reports; undefined if nobody knows. */
  readonly url: string | undefined;
  /** The trace that it is part of; undefined begins a new one. */
  readonly traceparent: string | undefined;
}

/** The whole environment of a program. */
export function environmentOf(parts: EnvironmentParts): Record<string, string> {
  const { assignment, target, secrets, folder, workerId, url, traceparent } = parts;
  const env: Record<string, string> = { PATH: PROGRAM_PATH, HOME: folder, TMPDIR: folder, LANG: 'C.UTF-8' };
  for (const [name, value] of Object.entries(target.env ?? {})) {
    env[name] =
      typeof value === 'string' ? value : (value.prefix ?? '') + secretValue(value.$secret, secrets);
    if (env[name].includes('\0')) {
      const detail = `The value of the variable ${name} cannot be passed on: it holds NUL.`;
      throw new ExecError('NOT_RUNNABLE', detail, { retryable: false });
    }
  }
  env.PUNCTUAL_JOB_ID = assignment.jobId;
  env.PUNCTUAL_ATTEMPT = String(assignment.attempt);
  env.PUNCTUAL_FENCE = String(assignment.fence);
  env.PUNCTUAL_WORKER_ID = workerId;
  env.PUNCTUAL_PAYLOAD_FILE = join(folder, PAYLOAD_FILE);
  env.PUNCTUAL_OUTPUT = join(folder, OUTPUT_FOLDER);
  if (assignment.receiverToken !== undefined) env.PUNCTUAL_TOKEN_FILE = join(folder, TOKEN_FILE);
  if (url !== undefined) env.PUNCTUAL_URL = url;
  env.TRACEPARENT = traceparent ?? newTrace();
  return env;
}

function secretValue(name: string, values: SecretsAnswer['values']): string {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  if (value === undefined) {
    throw new ExecError('SECRET_NOT_FOUND', `There is no secret ${name}.`, { retryable: false });
  }
  return value;
}

/** A new trace, of which nobody has recorded a span yet. */
function newTrace(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
}

/** What must not be kept of what a program prints: the values of its secrets, and its token. */
export function redactionOf(secrets: SecretsAnswer['values'], { receiverToken }: Assignment): Redaction {
  const marks = new Map<string, string>();
  for (const name of Object.keys(secrets)) {
    for (const part of [secrets[name]!, ...longLinesOf(secrets[name]!)]) marks.set(part, `[secret ${name}]`);
  }
  if (receiverToken !== undefined) marks.set(receiverToken, '[token]');
  return new Redaction(marks);
}

/** What is printed is kept by the line, so that a value of several lines, such as a key, would not be found as a whole. */
function longLinesOf(value: string): string[] {
  const lines = value.split('\n').map((line) => line.trim());
  return lines.length === 1 ? [] : lines.filter((line) => line.length >= LEAST_LINE).slice(0, MOST_LINES);
}
