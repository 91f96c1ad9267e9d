import type { AuditEntry } from '../core/audit.js';

/** The columns of a new entry of the audit, for the statements that write one. */

const COLUMNS: readonly (readonly [name: string, type: string, value: (entry: AuditEntry) => unknown])[] = [
  ['id', 'uuid', ({ id }) => id],
  ['at', 'bigint', ({ at }) => at],
  ['tenant', 'text', ({ tenant }) => tenant],
  ['key_id', 'uuid', ({ keyId }) => keyId],
  ['key_name', 'text', ({ keyName }) => keyName],
  ['address', 'text', ({ address }) => address],
  ['request_id', 'text', ({ requestId }) => requestId],
  ['action', 'text', ({ action }) => action],
  ['kind', 'text', ({ kind }) => kind],
  ['subject', 'text', ({ subject }) => subject],
  ['before', 'json', ({ before }) => before],
  ['after', 'json', ({ after }) => after],
  ['outcome', 'text', ({ outcome }) => outcome],
];

/** The SQL that inserts an entry whose values are the parameters from `$first` on, under the epoch of the given expression. */
export function insertEntrySql(first: number, epoch: string): string {
  const values = COLUMNS.map(([, type], index) => `$${first + index}::${type}`);
  return `INSERT INTO punctual.audit (epoch, ${COLUMNS.map(([name]) => name).join(', ')})
    SELECT ${epoch}, ${values.join(', ')}`;
}

/** The values of an entry, in the order of `insertEntrySql`. */
export function entryValues(entry: AuditEntry): unknown[] {
  return COLUMNS.map(([, , value]) => value(entry));
}
