import type { JobState } from '../core/job.js';
import type { PayloadCondition } from '../core/payload-filter.js';
import type { JobFilter } from '../core/wire.js';
import type { JobSearch } from '../store/job-search.js';
import { findJobsByKeyPrefix } from '../store/key-prefix.js';
import { findKey } from '../store/read-job.js';
import type { TenantReads } from '../store/tenant-reads.js';

/**
 * What the filters of a request mean. The range of ids that `since` and `until` mean is not in it: see `idRange`. Null when
 * nothing can be found.
 */
export async function searchOf(
  reads: TenantReads,
  tenant: string,
  filter: Omit<JobFilter, 'payload'>,
  payload: readonly PayloadCondition[] | undefined,
): Promise<JobSearch | null> {
  const { state, key, keyPrefix, since: _, until: __, ...rest } = filter;
  const states = state === undefined ? undefined : ([...new Set(state.split(','))] as JobState[]);
  const search: JobSearch = { ...rest, states, payload, keyPrefix };
  if (key !== undefined) {
    if (keyPrefix !== undefined && !key.startsWith(keyPrefix)) return null;
    const id = await reads.read(tenant, (db) => findKey(db, tenant, key));
    return id === null ? null : { ...search, ids: [id] };
  }
  if (keyPrefix === undefined) return search;
  const ids = await reads.read(tenant, (db) => findJobsByKeyPrefix(db, tenant, keyPrefix));
  return ids === null ? search : { ...search, ids };
}
