import { type AuditEntry, boundedText } from '../core/audit.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { beginEntry, endEntry } from './audit.js';
import type { Pool } from './database.js';
import type { TermKey } from './leader-statement.js';

/** The part of a leader's state that writes entries of the audit. */
export interface AuditedLeader {
  readonly term: TermKey;
  readonly hot: Pool;
  readonly log: Log;
  write<T>(work: () => Promise<T>): Promise<T>;
  /** Told that an entry was written. */
  noteEntry(): void;
}

/**
 * Work of a leader that takes several transactions, and so cannot be one with its entry. The entry is written first, with an
 * unknown outcome, and its end afterwards: a crash in between leaves an entry without its effect, never an effect without its
 * entry. Work that throws may have been done in part.
 */
export async function auditedWork<T>(
  leader: AuditedLeader,
  entry: AuditEntry | undefined,
  work: () => Promise<T>,
  after: (value: T) => object,
): Promise<T> {
  if (!entry) return work();
  const { hot, term, log } = leader;
  const end = async (outcome: 'done' | 'failed', view: object) => {
    try {
      const text = boundedText(view);
      if (!(await leader.write(() => endEntry(hot, term, entry.id, outcome, text))))
        log.warn({ entry: entry.id }, 'an action ended after its entry of the audit was chained');
    } catch (error) {
      log.warn({ entry: entry.id, error: messageOf(error) }, 'the end of an action is not in the audit');
    }
    leader.noteEntry();
  };
  await leader.write(() => beginEntry(hot, term, entry));
  let value: T;
  try {
    value = await work();
  } catch (error) {
    const code = error instanceof PunctualError ? error.code : 'INTERNAL';
    await end('failed', { error: code });
    throw error;
  }
  await end('done', after(value));
  return value;
}
