import type { AuditAuthor } from '../core/audit.js';
import type { Keep } from './idempotency.js';

/** What comes with a change that somebody requests. Both are missing for what a node does by itself. */
export interface Requested<T> {
  /** Who requests it, for the audit. */
  readonly author?: AuditAuthor | undefined;
  /** Stores the answer in the transaction of the change. */
  readonly keep?: Keep<T> | undefined;
}
