import { type ArtifactUse, artifactNamesIn } from '../core/artifact.js';
import { jobsOfArtifact, type NamingText, readNamingTexts } from '../store/artifact-uses.js';
import { type ArtifactRow, findNewest } from '../store/artifacts.js';
import type { Queryable } from '../store/database.js';
import type { Shard } from './shard.js';

/** Definitions that one statement reads. */
const AT_ONCE = 20;
const BEFORE_ALL = { kind: '', name: '' };

/** What names an artifact: the first `most` of live jobs, tasks, schedules and definitions. */
export async function usesOf(
  { pool }: Pick<Shard, 'pool'>,
  row: ArtifactRow,
  most: number,
): Promise<ArtifactUse[]> {
  const { tenant, id } = row;
  const jobs = await jobsOfArtifact(pool, tenant, id, most);
  const uses: ArtifactUse[] = jobs.map((name) => ({ kind: 'job', name }));
  const names = await namesOf(pool, row);
  for (let after: Pick<NamingText, 'kind' | 'name'> | typeof BEFORE_ALL = BEFORE_ALL; uses.length < most; ) {
    const page = await readNamingTexts(pool, tenant, after, AT_ONCE);
    for (const { kind, name, text } of page) {
      if ([...artifactNamesIn(JSON.parse(text))].some((each) => names.has(each))) uses.push({ kind, name });
    }
    const last = page.at(-1);
    if (!last || page.length < AT_ONCE) break;
    after = last;
  }
  return uses.slice(0, most);
}

/** How the artifact can be named: a name alone means its newest version. */
async function namesOf(
  db: Queryable,
  { tenant, id, name, version }: ArtifactRow,
): Promise<ReadonlySet<string>> {
  if (name === null) return new Set([id]);
  const newest = await findNewest(db, tenant, name);
  const isNewest = newest === null || newest.id === id;
  return new Set([id, `${name}@${version}`, ...(isNewest ? [name] : [])]);
}
