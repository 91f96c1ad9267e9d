import type { JobState } from '../core/job.js';
import type { PayloadCondition } from '../core/payload-filter.js';
import type { JobFilter } from '../core/wire.js';
import { readMemberIds } from '../store/batch-rows.js';
import type { JobSearch } from '../store/job-search.js';
import { findJobsByKeyPrefix } from '../store/key-prefix.js';
import { findKey } from '../store/read-job.js';
import { readStepIds } from '../store/read-workflows.js';
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
  const { state, key, keyPrefix, workflow, batch, since: _, until: __, ...rest } = filter;
  const states = state === undefined ? undefined : ([...new Set(state.split(','))] as JobState[]);
  const search: JobSearch = { ...rest, states, payload, keyPrefix };
  if (key !== undefined) {
    if (keyPrefix !== undefined && !key.startsWith(keyPrefix)) return null;
    const id = await reads.read(tenant, (db) => findKey(db, tenant, key));
    // Steps and members have no keys of their own.
    return id === null || workflow !== undefined || batch !== undefined ? null : { ...search, ids: [id] };
  }
  if (workflow !== undefined) {
    if (keyPrefix !== undefined || batch !== undefined) return null;
    return { ...search, ids: await reads.read(tenant, (db) => readStepIds(db, tenant, workflow)) };
  }
  if (batch !== undefined) {
    if (keyPrefix !== undefined) return null;
    return { ...search, ids: await reads.read(tenant, (db) => readMemberIds(db, tenant, batch)) };
  }
  if (keyPrefix === undefined) return search;
  const ids = await reads.read(tenant, (db) => findJobsByKeyPrefix(db, tenant, keyPrefix));
  return ids === null ? search : { ...search, ids };
}
