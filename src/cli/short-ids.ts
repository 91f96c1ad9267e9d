import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import { isUuid } from '../core/uuid.js';
import type { MatchingIds } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { inputOfArgument } from './input-names.js';
import { kindOfArgument, kindOfOption } from './value-kinds.js';

/** Ids of jobs and workers may be shortened to a beginning that is unique; the node knows what it stands for. */

type IdKind = 'job' | 'worker';

const BEGINNING = /^[0-9a-f]{8,32}$/;

/** Replaces shortened ids among the arguments of a command by whole ones. */
export async function completeArguments(
  api: Transport,
  command: Command,
  signal: AbortSignal,
): Promise<string[]> {
  const declared = command.registeredArguments;
  const whole: string[] = [];
  for (const [index, text] of command.args.entries()) {
    const argument = declared[Math.min(index, declared.length - 1)];
    const kind = argument ? kindOfArgument(command, argument) : null;
    whole.push(
      argument && isIdKind(kind)
        ? await completeId(api, kind, text, inputOfArgument(argument), signal)
        : text,
    );
  }
  return whole;
}

/** Replaces shortened ids among the options of a command by whole ones. */
export async function completeOptions<O extends object>(
  api: Transport,
  command: Command,
  options: O,
  signal: AbortSignal,
): Promise<O> {
  const whole = { ...options } as Record<string, unknown>;
  for (const option of command.options) {
    const kind = kindOfOption(option);
    const text = whole[option.attributeName()];
    if (!isIdKind(kind) || typeof text !== 'string') continue;
    whole[option.attributeName()] = await completeId(api, kind, text, option.long ?? option.flags, signal);
  }
  return whole as O;
}

function isIdKind(kind: string | null): kind is IdKind {
  return kind === 'job' || kind === 'worker';
}

async function completeId(
  api: Transport,
  kind: IdKind,
  text: string,
  input: string,
  signal: AbortSignal,
): Promise<string> {
  const id = text.trim().toLowerCase();
  if (isUuid(id)) return id;
  const digits = id.replaceAll('-', '');
  if (!BEGINNING.test(digits)) {
    const detail = `must be the id of a ${kind}, or at least its first 8 characters`;
    throw new PunctualError('INVALID_REQUEST', `${input}: ${detail}; got ${JSON.stringify(text)}.`);
  }
  const query = new URLSearchParams({ kind, prefix: digits });
  const { ids, more } = await api.request<MatchingIds>('GET', `/v1/ids?${query}`, { signal });
  if (ids.length === 1 && !more) return ids[0]!;
  if (ids.length === 0 && !more) {
    const code = kind === 'job' ? 'JOB_NOT_FOUND' : 'WORKER_NOT_FOUND';
    throw new PunctualError(code, `There is no ${kind} whose id begins with ${text}.`);
  }
  const some = ids.length === 0 ? '' : `: ${ids.join(', ')}${more ? ' …' : ''}`;
  throw new PunctualError('AMBIGUOUS_ID', `The ids of several ${kind}s begin with ${text}${some}.`);
}
