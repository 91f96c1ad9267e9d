import type { KeyRule } from '../core/keys.js';
import { byIndex } from './batch-statement.js';
import { Columns } from './columns.js';
import { type Queryable, run, statement } from './database.js';
import { typeOf } from './job-columns.js';
import type { JobRow } from './job-row.js';
import type { Compared } from './key-differences.js';
import { earliestEnd } from './read-job.js';

/** The jobs that have the keys of submissions, compared with those. */

/** A job to be stored, with what it wants if a job has its key. */
export interface KeyedJob {
  readonly row: JobRow;
  readonly held: boolean;
  readonly keyRule: KeyRule;
  /** When it was submitted, in microseconds on the database's clock; null for now. */
  readonly saidAt: number | null;
}

/** A job with a key that another job has. */
export interface Beaten {
  readonly job: KeyedJob;
  readonly holder: string;
}

const BEATEN_COLUMNS = new Columns<Beaten>([
  { name: 'id', type: 'uuid', of: ({ job }) => job.row.id },
  { name: 'holder', type: 'uuid', of: ({ holder }) => holder },
  { name: 'tenant', type: 'text', of: ({ job }) => job.row.definition.tenant },
  { name: 'since', type: 'bigint', of: ({ holder }) => earliestEnd(holder) },
  { name: 'payload', type: 'json', of: ({ job }) => job.row.payload },
  { name: 'target', type: 'json', of: ({ job }) => job.row.definition.target },
  { name: 'requires', type: 'json', of: ({ job }) => job.row.definition.requires },
]);
const BEATEN = BEATEN_COLUMNS.inSql(1);

/** The columns of a holder that are compared as they are. */
const PLAIN = [
  ...([
    'queue',
    'task',
    'rank',
    'run_at',
    'created_at',
    'start_before',
    'max_attempts',
    'max_losses',
  ] as const),
  ...(['at_most_once', 'timeout_ms', 'concurrency_key', 'backoff'] as const),
];

/** A holder in one place. Large values are compared here, so that they need not be sent. */
function holderIn(
  table: string,
  alias: string,
  facts: { started: string; ended: string; held: string },
): string {
  const same = (name: 'payload' | 'target' | 'requires') =>
    `${alias}.${name}::text IS NOT DISTINCT FROM (${BEATEN.of(name)})::text AS same_${name}`;
  const plain = PLAIN.map((name) => `${alias}.${name}::${typeOf(name)}`).join(', ');
  return `SELECT ${facts.ended} AS ended, ${facts.started} AS started, ${facts.held} AS held, ${plain},
        ${same('payload')}, ${same('target')}, ${same('requires')}
      FROM punctual.${table} ${alias}`;
}

/**
 * The jobs that have the keys of others, compared with those. A holder that is in no place is missing: days of history
 * are removed before the keys of their jobs, so for a while there are keys of jobs that are gone. All places are read in
 * one statement, or a job that moves would seem to be gone.
 */
const FIND_HOLDERS = statement(
  'find-holders',
  `
    SELECT u.id, p.* FROM ${BEATEN.source} CROSS JOIN LATERAL (
      ${holderIn('jobs', 'j', {
        started: 'j.attempts > 0 OR (SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NOT NULL',
        ended: 'false',
        held: 'false',
      })}
      WHERE ${byIndex('j.id', BEATEN.of('holder'))}
      UNION ALL
      ${holderIn('later', 'l', { started: 'l.attempts > 0', ended: 'false', held: 'l.held' })}
      WHERE ${byIndex('l.id', BEATEN.of('holder'))}
      UNION ALL
      ${holderIn('job_history', 'h', { started: 'true', ended: 'true', held: 'false' })}
      WHERE h.tenant = ${BEATEN.of('tenant')} AND h.id = ${BEATEN.of('holder')}
        AND h.finished_at >= ${BEATEN.of('since')}) p`,
);

/** Holders that one statement compares, so that it reads a bounded number of payloads. */
const COMPARED_AT_ONCE = 500;

/** A holder, by the id of the job that it was compared with. */
export interface HolderRow extends Compared, Record<string, unknown> {
  readonly id: string;
}

/** For each beaten job, by its id, the job that has its key; none for one that is gone. */
export async function findHolders(db: Queryable, beaten: readonly Beaten[]): Promise<Map<string, HolderRow>> {
  const holders = new Map<string, HolderRow>();
  for (let from = 0; from < beaten.length; from += COMPARED_AT_ONCE) {
    const portion = beaten.slice(from, from + COMPARED_AT_ONCE);
    const found = await run<HolderRow>(db, FIND_HOLDERS, BEATEN_COLUMNS.parameters(portion));
    for (const row of found) holders.set(row.id, row);
  }
  return holders;
}
