import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { invalid, messageOf, PunctualError } from '../core/errors.js';
import { readJsonText } from '../core/json-reader.js';
import type { Cli } from './cli.js';

/** More than any server accepts, so that the server's own limit decides. */
const MOST_DEPTH = 10_000;

/** Refuses two options that both want to read stdin. */
export function mustHaveOneStdin(...values: readonly (string | undefined)[]): void {
  if (values.filter((value) => value === '-').length > 1)
    throw new PunctualError('USAGE', 'Only one of the two can be stdin.');
}

/** The body of a call: JSON if it is JSON, else text. */
export async function readDataOption(
  cli: Cli,
  value: string,
): Promise<{ readonly value: unknown; readonly isText: boolean }> {
  const fromFile = value.startsWith('@') ? value.slice(1) : value === '-' ? '-' : null;
  const source = fromFile === null ? value : await readInput(cli, fromFile);
  try {
    return { value: readJson(source), isText: false };
  } catch (error) {
    if (isMalformed(error)) return { value: source, isText: true };
    throw below('/target/body', error);
  }
}

/** The payload, or the input of a workflow: JSON, `@file`, or `-` for stdin. */
export async function readPayload(
  cli: Cli,
  value: string | undefined,
  option: '--payload' | '--input' = '--payload',
): Promise<unknown> {
  if (value === undefined) return undefined;
  const fromFile = value.startsWith('@') ? value.slice(1) : value === '-' ? '-' : null;
  const source = fromFile === null ? value : await readInput(cli, fromFile);
  try {
    return readJson(source);
  } catch (error) {
    if (!isMalformed(error)) throw below(`/${option.slice(2)}`, error);
    const where = fromFile === null ? option : fromFile === '-' ? 'stdin' : fromFile;
    const advice = fromFile === null ? ` Quote it for the shell: ${option} '{"name": "Ada"}'.` : '';
    throw notJson(`The ${option.slice(2)} (${where})`, error, advice);
  }
}

/** The input of a workflow, which may be given under the name that inputs of jobs have, too. */
export function readWorkflowInput(
  cli: Cli,
  { input, payload }: { readonly input?: string | undefined; readonly payload?: string | undefined },
): Promise<unknown> {
  if (input !== undefined && payload !== undefined)
    throw new PunctualError('USAGE', 'Give --input or --payload, not both: they mean the same.');
  return input === undefined ? readPayload(cli, payload) : readPayload(cli, input, '--input');
}

/** The error of a text that is no JSON. */
export function notJson(what: string, error: unknown, advice = ''): PunctualError {
  const why = messageOf(error).replace(/\.$/, '');
  return new PunctualError('MALFORMED_JSON', `${what} is not valid JSON: ${why}.${advice}`);
}

/** Whether a text is no JSON at all, in contrast to JSON that would lose something. */
export function isMalformed(error: unknown): boolean {
  return !(error instanceof PunctualError) || error.code === 'MALFORMED_JSON';
}

/** What is wrong with JSON, with pointers that begin at this field of the request. */
function below(field: string, error: unknown): PunctualError {
  const { errors } = error as PunctualError;
  return invalid(errors.map((each) => ({ ...each, pointer: field + each.pointer })));
}

/**
 * Parses JSON. What would be lost on the way to the server is refused: numbers that JavaScript cannot represent, and all but the
 * last of several fields of one name.
 */
export function readJson(source: string): unknown {
  const shape = { maxDepth: MOST_DEPTH, allowProto: true, anySize: true, uniqueNames: true };
  return readJsonText(Buffer.from(source), shape);
}

/** The JSON of a file, or of stdin for `-`. */
export async function readJsonInput(cli: Cli, path: string): Promise<unknown> {
  const source = await readInput(cli, path);
  try {
    return readJson(source);
  } catch (error) {
    if (!isMalformed(error)) throw error;
    const where = path === '-' ? 'stdin' : path;
    throw notJson(where, error);
  }
}

/** The text of a file, or of stdin for `-`. */
export async function readInput(cli: Cli, path: string): Promise<string> {
  if (path === '-') return text(cli.stdin);
  try {
    return await readFile(resolve(cli.folder, path), 'utf8');
  } catch (error) {
    throw new PunctualError('USAGE', `The file cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}
