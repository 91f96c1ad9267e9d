import { type Command, InvalidArgumentError } from 'commander';
import { PunctualError } from '../core/errors.js';
import { type HttpTarget, NAME_PATTERN, type SecretReference } from '../core/job.js';
import { isPlainObject } from '../core/schemas/explain.js';
import type { Cli } from './cli.js';
import { readDataOption } from './json-input.js';
import { several } from './option-values.js';

/** The options of a command that can make an http target. */
export interface HttpOptions {
  readonly http?: readonly string[];
  readonly header?: readonly string[];
  readonly data?: string;
}

/** Two words: the method and the address. */
const HTTP = '--http <call...>';

/** Adds `--http`, `--header` and `--data`. */
export function addHttpOptions(command: Command): void {
  command
    .option(HTTP, 'call a URL instead of a task: --http POST https://…', several)
    .option(
      '--header <header>',
      `a header of the call, such as 'x-team: blue', or with a secret: 'authorization: Bearer {"$secret": "stripe"}'; repeatable`,
      header,
    )
    .option('--data <body>', 'the body of the call: JSON or text, @file, or - for stdin');
}

/** Collects headers, which it keeps as they are written. */
function header(text: string, previous: readonly string[] | undefined): readonly string[] {
  if (!/^[^:\s]+:/.test(text))
    throw new InvalidArgumentError("Expected name: value, such as 'x-team: blue'.");
  return several(text, previous);
}

/** The target that the options describe; undefined without `--http`. */
export async function httpTargetOf(cli: Cli, options: HttpOptions): Promise<HttpTarget | undefined> {
  const { http, header: headers = [], data } = options;
  if (http === undefined) {
    const flag = data !== undefined ? '--data' : headers.length > 0 ? '--header' : null;
    if (flag !== null) throw new PunctualError('USAGE', `${flag} needs --http.`);
    return undefined;
  }
  const [method, url] = http.length === 1 ? ['POST', http[0]!] : http;
  if (http.length > 2) {
    throw new PunctualError(
      'USAGE',
      'Give --http a method and an address: --http POST https://example.com/hook.',
    );
  }
  const given: Record<string, string | SecretReference> = {};
  for (const each of headers) {
    const at = each.indexOf(':');
    given[each.slice(0, at)] = headerValue(each.slice(at + 1).trim());
  }
  const body = data === undefined ? undefined : await readDataOption(cli, data);
  // A body that is no JSON is sent as it is written.
  const isTyped = Object.keys(given).some((name) => name.toLowerCase() === 'content-type');
  if (body?.isText && !isTyped) given['content-type'] = 'text/plain; charset=utf-8';
  return {
    type: 'http',
    url: url!,
    method: method!.toUpperCase(),
    ...(Object.keys(given).length > 0 && { headers: given }),
    ...(body && { body: body.value }),
  };
}

/** A text, or a reference to a secret with the text before it. */
function headerValue(text: string): string | SecretReference {
  const at = text.search(/\{\s*"\$secret"/);
  if (at < 0) return text;
  const name = secretIn(text.slice(at));
  if (name === null) {
    const detail = `The header ${JSON.stringify(text)} would be sent as it is: write a secret as {"$secret": "NAME"}, with nothing behind it.`;
    throw new PunctualError('USAGE', detail);
  }
  return { $secret: name, ...(at > 0 && { prefix: text.slice(0, at) }) };
}

/** The name in a reference to a secret and nothing else; null for any other text. */
export function secretIn(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isPlainObject(value) || Object.keys(value).length > 1) return null;
    return typeof value.$secret === 'string' && NAME_PATTERN.test(value.$secret) ? value.$secret : null;
  } catch {
    return null;
  }
}
