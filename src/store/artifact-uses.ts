import { type ArtifactUse, artifactNamesIn } from '../core/artifact.js';
import { type ArtifactRow, findNewest } from './artifacts.js';
import { type Queryable, run, statement } from './database.js';

/** What names artifacts: live jobs by the id; tasks, schedules, definitions and steps that start workflows also by the name. */

/** The artifact that a job names, as the indexes have it: nodes write targets without blanks. */
const named = (job: string) => `substring(${job}.target::text FROM '"artifact":"([0-9a-f-]{36})"')`;

const JOBS_OF = statement(
  'jobs-of-artifact',
  `
    (SELECT j.id FROM punctual.jobs j WHERE ${named('j')} = $2 AND j.tenant = $1 LIMIT $3)
    UNION ALL
    (SELECT l.id FROM punctual.later l WHERE ${named('l')} = $2 AND l.tenant = $1 LIMIT $3)
    LIMIT $3`,
);

/** After the last page, in the order of kinds and names; each kind is read along its index. */
const AFTER = (kind: string, name: string): string =>
  `('${kind}' > $2 OR ('${kind}' = $2 AND ${name} > $3)) ORDER BY ${name} LIMIT $4`;

/** Whether an artifact may be named in a text, by its id or its name; nobody can say more without parsing it. */
const mentions = (json: string) =>
  `strpos(${json}::text, '"artifact"') > 0 AND (strpos(${json}::text, $5) > 0 OR strpos(${json}::text, $6) > 0)`;

const DEFINITIONS_WITH = statement(
  'definitions-with-artifacts',
  `
    SELECT * FROM (
      (SELECT 'task' AS kind, t.name, t.definition::text AS text FROM punctual.tasks t
       WHERE t.tenant = $1 AND ${mentions('t.definition')} AND ${AFTER('task', 't.name')})
      UNION ALL
      (SELECT 'schedule', s.name, s.definition::text FROM punctual.schedules s
       WHERE s.tenant = $1 AND s.deleted_at IS NULL AND ${mentions('s.definition')}
         AND ${AFTER('schedule', 's.name')})
      UNION ALL
      (SELECT 'definition', d.name, d.jobs::text FROM punctual.workflow_definitions d
       WHERE d.tenant = $1 AND d.replaced_at IS NULL AND ${mentions('d.jobs')}
         AND ${AFTER('definition', 'd.name')})
      UNION ALL
      (SELECT 'job', p.id::text, p.inner_graph::text FROM punctual.steps p
       WHERE p.tenant = $1 AND p.inner_graph IS NOT NULL AND p.outcome IS NULL AND ${mentions('p.inner_graph')}
         AND ${AFTER('job', 'p.id::text')})) n
    ORDER BY n.kind, n.name LIMIT $4`,
);

/** Jobs that have not ended and run the artifact. */
export async function jobsOfArtifact(
  db: Queryable,
  tenant: string,
  id: string,
  limit: number,
): Promise<string[]> {
  const rows = await run<{ id: string }>(db, JOBS_OF, [tenant, id, limit]);
  return rows.map((row) => row.id);
}

/** Something that is defined and may name artifacts, as JSON text. */
interface NamingText extends Record<string, unknown> {
  readonly kind: ArtifactUse['kind'];
  readonly name: string;
  readonly text: string;
}

/** Those of a tenant that may name an artifact, a page at a time, after the given one. */
function readNamingTexts(
  db: Queryable,
  { tenant, id, name }: ArtifactRow,
  after: Pick<NamingText, 'name'> & { readonly kind: string },
  limit: number,
): Promise<NamingText[]> {
  return run(db, DEFINITIONS_WITH, [tenant, after.kind, after.name, limit, id, name ?? id]);
}

/** Definitions that one statement reads: a single graph may have a megabyte. */
const AT_ONCE = 20;
const BEFORE_ALL = { kind: '', name: '' };

/** What names an artifact: the first `most` of live jobs, tasks, schedules and definitions. */
export async function usesOf(db: Queryable, row: ArtifactRow, most: number): Promise<ArtifactUse[]> {
  const { tenant, id } = row;
  const jobs = await jobsOfArtifact(db, tenant, id, most);
  const uses: ArtifactUse[] = jobs.map((name) => ({ kind: 'job', name }));
  const names = await namesOf(db, row);
  for (let after: Pick<NamingText, 'kind' | 'name'> | typeof BEFORE_ALL = BEFORE_ALL; uses.length < most; ) {
    const page = await readNamingTexts(db, row, after, AT_ONCE);
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
