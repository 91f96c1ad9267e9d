import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import { isUuid } from '../core/uuid.js';
import type { MatchingIds, Page } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { inputOfArgument } from './input-names.js';
import { kindOfArgument, kindOfOption } from './value-kinds.js';

/** Ids of jobs, workers, keys, signing secrets, workflows, batches and artifacts may be shortened to a beginning that is unique; the node knows what it stands for. */

const NOT_FOUND = {
  job: 'JOB_NOT_FOUND',
  worker: 'WORKER_NOT_FOUND',
  key: 'KEY_NOT_FOUND',
  'signing-secret': 'SIGNING_SECRET_NOT_FOUND',
  workflow: 'WORKFLOW_NOT_FOUND',
  batch: 'BATCH_NOT_FOUND',
  artifact: 'ARTIFACT_NOT_FOUND',
} as const;

type IdKind = keyof typeof NOT_FOUND;

/** The lists of what is listed by id, the highest first. */
const LISTS = {
  key: '/v1/keys',
  'signing-secret': '/v1/signing-secrets',
  workflow: '/v1/workflows',
  batch: '/v1/batches',
  artifact: '/v1/artifacts',
} as const;

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
  return kind !== null && Object.hasOwn(NOT_FOUND, kind);
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
  if (kind === 'artifact' && (!BEGINNING.test(digits) || (await isArtifactName(api, text, signal))))
    return text;
  if (!BEGINNING.test(digits)) {
    const detail = `must be the id of a ${kind}, or at least its first 8 characters`;
    throw new PunctualError('INVALID_REQUEST', `${input}: ${detail}; got ${JSON.stringify(text)}.`);
  }
  const { ids, more } = await (kind === 'job' || kind === 'worker'
    ? findIds(api, kind, digits, signal)
    : findListed(api, LISTS[kind], digits, signal));
  if (ids.length === 1 && !more) return ids[0]!;
  if (ids.length === 0 && !more) {
    throw new PunctualError(NOT_FOUND[kind], `There is no ${kind} whose id begins with ${text}.`);
  }
  const some = ids.length === 0 ? '' : `: ${ids.join(', ')}${more ? ' …' : ''}`;
  const several = kind === 'batch' ? 'batches' : `${kind}s`;
  throw new PunctualError('AMBIGUOUS_ID', `The ids of several ${several} begin with ${text}${some}.`);
}

function findIds(
  api: Transport,
  kind: 'job' | 'worker',
  prefix: string,
  signal: AbortSignal,
): Promise<MatchingIds> {
  return api.request<MatchingIds>('GET', `/v1/ids?${new URLSearchParams({ kind, prefix })}`, { signal });
}

/** Artifacts are mostly called by their names, some of which look like the beginning of an id. */
async function isArtifactName(api: Transport, name: string, signal: AbortSignal): Promise<boolean> {
  const path = `/v1/artifacts?${new URLSearchParams({ name, limit: '1' })}`;
  return (await api.request<Page<unknown>>('GET', path, { signal })).data.length > 0;
}

/** How many ids are told: enough to choose from. */
const TOLD = 5;

/** In such a list, the ids with this beginning come right after the last id that has it. */
async function findListed(
  api: Transport,
  list: string,
  prefix: string,
  signal: AbortSignal,
): Promise<MatchingIds> {
  // The first id behind them: the list begins below it, and so with the last id that has the beginning.
  const behind = (BigInt(`0x${prefix}`) + 1n).toString(16).padStart(prefix.length, '0');
  const end = behind.length > prefix.length ? 'f'.repeat(32) : behind.padEnd(32, '0');
  const last = end.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const path = `${list}?limit=${TOLD + 1}&after=${last}`;
  const { data } = await api.request<Page<{ readonly id: string }>>('GET', path, { signal });
  const found = data.map(({ id }) => id).filter((id) => id.replaceAll('-', '').startsWith(prefix));
  return { ids: found.slice(0, TOLD), more: found.length > TOLD };
}
