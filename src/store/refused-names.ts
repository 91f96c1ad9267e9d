import { PunctualError, type PunctualErrorOptions } from '../core/errors.js';
import type { Named } from './needs-digest.js';

/** Tenants have as many names of a kind as they may have; the others of the same request can be stored without these. */
export class RefusedNamesError extends PunctualError {
  constructor(
    detail: string,
    private readonly isRefused: (named: Named) => boolean,
    options: PunctualErrorOptions = {},
  ) {
    super('QUOTA_EXCEEDED', detail, options);
  }

  /** Whether these are among the names that were refused. */
  refuses(named: Named): boolean {
    return this.isRefused(named);
  }
}
