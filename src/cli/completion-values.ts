import { ApiClient } from '../client/api-client.js';
import type { KeyView } from '../core/access.js';
import type { ArtifactView } from '../core/artifact.js';
import type { BatchSummary } from '../core/batch.js';
import { type Job, NAME_PATTERN } from '../core/job.js';
import type { SecretView, SigningSecretView } from '../core/secret.js';
import type { Page, QueueView, ScheduleView, TaskView, TenantView, WorkerView } from '../core/wire.js';
import type { ListedWorkflow } from '../core/workflow.js';
import { findCredentials, type GlobalOptions } from './call.js';
import type { Cli } from './cli.js';
import type { ValueKind } from './value-kinds.js';

/**
 * Values for the completion scripts, from the nodes: `punctual __values KIND WORDS…`, where the words are what stands on
 * the command line. It must never disturb whoever presses Tab: it prints names or nothing, says nothing about what goes
 * wrong, and takes no longer than a moment.
 */

/** The word that the completion scripts call; no command for people. */
export const VALUES_COMMAND = '__values';

const LIMIT_MS = 1_000;
const MOST_VALUES = 200;

/** Prints the names of a kind, one per line. */
export async function printValues([kind = '', ...words]: readonly string[], cli: Cli): Promise<void> {
  if (!Object.hasOwn(SOURCES, kind)) return;
  try {
    const options = globalsAmong(words);
    const { urls, apiKey } = findCredentials(cli, options);
    const { tenant } = options;
    const api = new ApiClient({ urls, apiKey, retryForMs: 0, ...(tenant !== undefined && { tenant }) });
    try {
      const names = await SOURCES[kind as ValueKind](pageReader(api, cli.interrupted));
      // Whatever a node answers, only what can be a name, and cannot be taken for an option, reaches the shell.
      const isSafe = (name: string): boolean => NAME_PATTERN.test(name) && !name.startsWith('-');
      const safe = [...new Set(names)].filter(isSafe).slice(0, MOST_VALUES);
      cli.stdout.write(safe.map((name) => `${name}\n`).join(''));
    } finally {
      await api.close();
    }
  } catch {
    // Without a node, a key or the right to ask there is nothing to offer.
  }
}

type ReadPage = <T>(path: string) => Promise<readonly T[]>;

function pageReader(api: ApiClient, signal: AbortSignal): ReadPage {
  const request = { signal, timeoutMs: LIMIT_MS };
  return async <T>(path: string) =>
    (await api.request<Page<T>>('GET', `${path}?limit=${MOST_VALUES}`, request)).data;
}

const SOURCES: Readonly<Record<ValueKind, (read: ReadPage) => Promise<string[]>>> = {
  job: async (read) => (await read<Job>('/v1/jobs')).map(({ id }) => id),
  worker: async (read) => (await read<WorkerView>('/v1/workers')).map(({ id }) => id),
  key: async (read) => (await read<KeyView>('/v1/keys')).map(({ id }) => id),
  secret: async (read) => (await read<SecretView>('/v1/secrets')).map(({ name }) => name),
  'signing-secret': async (read) =>
    (await read<SigningSecretView>('/v1/signing-secrets')).map(({ id }) => id),
  workflow: async (read) => (await read<ListedWorkflow>('/v1/workflows')).map(({ id }) => id),
  batch: async (read) => (await read<BatchSummary>('/v1/batches')).map(({ id }) => id),
  artifact: async (read) => (await read<ArtifactView>('/v1/artifacts')).map(({ id, name }) => name ?? id),
  queue: async (read) => (await read<QueueView>('/v1/queues')).map(({ name }) => name),
  schedule: async (read) => (await read<ScheduleView>('/v1/schedules')).map(({ name }) => name),
  tenant: async (read) => (await read<TenantView>('/v1/tenants')).map(({ id }) => id),
  // Tasks are known by their definitions, by who runs them and by what was submitted lately.
  task: async (read) => {
    const [defined, workers, jobs] = await Promise.all([
      read<TaskView>('/v1/tasks'),
      read<WorkerView>('/v1/workers'),
      read<Job>('/v1/jobs'),
    ]);
    const names = [...workers.flatMap(({ tasks }) => tasks), ...jobs.flatMap(({ task }) => task ?? [])];
    return [...defined.map(({ name }) => name), ...names].sort();
  },
};

const GLOBALS = {
  '--url': 'url',
  '--api-key': 'apiKey',
  '--tenant': 'tenant',
  '--profile': 'profile',
} as const;

/** The global options among words that may be no complete command line yet. */
export function globalsAmong(words: readonly string[]): GlobalOptions {
  const found: { -readonly [N in 'url' | 'apiKey' | 'tenant' | 'profile']?: string } = {};
  for (const [at, word] of words.entries()) {
    for (const [flag, name] of Object.entries(GLOBALS)) {
      const value =
        word === flag ? words[at + 1] : word.startsWith(`${flag}=`) ? word.slice(flag.length + 1) : '';
      if (value) found[name] = value;
    }
  }
  return found;
}
