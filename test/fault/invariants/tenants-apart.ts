import type { Invariant } from '../checker.js';

/** What a tenant submits is nobody else's business. */
export const invariant: Invariant = {
  name: 'tenants-apart',
  rule: 'A job reaches only workers of its own tenant.',
  *check(seen) {
    for (const [job, starts] of seen.startsByJob) {
      for (const { n, tenant, worker } of starts) {
        const owner = seen.orderByNumber.get(n)?.tenant;
        if (owner !== undefined && owner !== tenant)
          yield { job, detail: `a job of ${owner} was started by ${worker}, a worker of ${tenant}` };
      }
    }
  },
};
