import { invalid } from '../core/errors.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { ManyJobsAnswer, ManyJobsRequest, ManyVerb, RefusedJob } from '../core/wire.js';
import { MAX_IDS } from '../core/wire.js';
import { pause } from '../transport/pause.js';
import type { Transport } from '../transport/transport.js';
import { mayRepeat } from './api-client.js';
import { filterOf, fixedFilter, JOB_FILTER_OPTIONS, type JobFilterOptions } from './job-filter.js';

/** Jobs by their ids, by a filter, or all that can be changed in the way that is asked for. */
export type JobSelection =
  | { readonly ids: readonly string[]; readonly filter?: never; readonly all?: never }
  | { readonly filter: JobFilterOptions; readonly ids?: never; readonly all?: never }
  | { readonly all: true; readonly ids?: never; readonly filter?: never };

/** How many jobs were changed so far, of how many that matched so far. */
export interface ManyProgress {
  readonly matched: number;
  readonly changed: number;
  /** Whether the work goes on; in the result of a dry run, whether the count ended early, so that more jobs match. */
  readonly more: boolean;
}

/** Options of a change of many jobs. */
export interface ManyOptions {
  /** Only counts the jobs. */
  readonly dryRun?: boolean;
  /** Ends the work after the part that is under way; what was changed stays changed. */
  readonly signal?: AbortSignal;
  /** Is told after each part of the work. */
  readonly onProgress?: (progress: ManyProgress) => void;
}

const SELECTION: OptionNames<JobSelection> = { ids: true, filter: true, all: true };
const OPTIONS: OptionNames<ManyOptions> = { dryRun: true, signal: true, onProgress: true };

/** What became of a change of many jobs. */
export interface ManyResult extends ManyProgress {
  /** Jobs of `ids` that cannot be changed, and jobs whose change failed. */
  readonly refused: readonly RefusedJob[];
}

/**
 * Changes many jobs, part by part, until all is done. A part whose answer was lost is repeated: a job that was changed
 * already no longer matches, so it is counted as changed only if the answer arrived. A part by ids is not, because such
 * jobs would be refused.
 */
export async function changeJobs(
  transport: Transport,
  verb: ManyVerb,
  selection: JobSelection,
  options: ManyOptions = {},
): Promise<ManyResult> {
  const of = `${verb === 'redrive' ? 'retry' : verb}Many()`;
  checkOptions(of, selection, SELECTION);
  checkOptions(`The filter of ${of}`, selection.filter, JOB_FILTER_OPTIONS);
  checkOptions(of, options, OPTIONS);
  const { dryRun = false, signal, onProgress } = options;
  const refused: RefusedJob[] = [];
  let matched = 0;
  let changed = 0;
  let more = false;
  const requests = [...requestsOf(selection)];
  for (const [index, request] of requests.entries()) {
    let after: string | undefined;
    do {
      signal?.throwIfAborted();
      const body = { ...request, ...(dryRun && { dryRun }), ...(after !== undefined && { after }) };
      const repeatable = dryRun || request.ids === undefined;
      const answer = await patiently({ hasBegun: matched > 0, repeatable, signal }, () =>
        transport.request<ManyJobsAnswer>('POST', `/v1/jobs/${verb}`, {
          body,
          retry: repeatable,
          // A change under way would go on at the node, and how far would not be known.
          ...(signal && dryRun && { signal }),
        }),
      );
      matched += answer.matched;
      changed += answer.changed;
      more = answer.more || index < requests.length - 1;
      for (const job of answer.refused) refused.push(job);
      after = answer.next ?? undefined;
      onProgress?.({ matched, changed, more });
    } while (after !== undefined && !dryRun);
  }
  return { matched, changed, more, refused };
}

/** How long work that has begun is tried again while no node can go on with it, as after the loss of a leader. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 500;

interface Patience {
  readonly hasBegun: boolean;
  /** Whether a request may be repeated that may have taken effect. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

async function patiently<T>({ hasBegun, repeatable, signal }: Patience, ask: () => Promise<T>): Promise<T> {
  const until = performance.now() + (hasBegun ? PATIENCE_MS : 0);
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!mayRepeat(error, repeatable) || performance.now() >= until) throw error;
      await pause(PAUSE_MS, signal);
      if (signal?.aborted) throw error;
    }
  }
}

function* requestsOf({ ids, filter, all }: JobSelection): Iterable<ManyJobsRequest> {
  // Programs without types may say more than one thing, and none of them must be taken for all jobs.
  if ([ids !== undefined, filter !== undefined, all === true].filter(Boolean).length !== 1) {
    throw invalid([{ pointer: '/all', detail: 'give either "ids", a "filter", or "all": true' }]);
  }
  if (filter !== undefined) yield { filter: filterOf(fixedFilter(filter, Date.now())) };
  else if (ids === undefined) yield { all: true };
  else {
    for (let from = 0; from < ids.length; from += MAX_IDS) yield { ids: ids.slice(from, from + MAX_IDS) };
  }
}
