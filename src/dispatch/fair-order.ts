interface Heavy {
  readonly tenant: string;
  readonly bytes: number;
}

/**
 * Jobs in an order in which tenants take turns by bytes: each job comes after as much as its tenant has before it. A few
 * small ones thereby do not wait for the many large ones of somebody else; those of one tenant keep their order.
 */
export function inFairOrder<T extends Heavy>(jobs: readonly T[]): T[] {
  const before = new Map<string, number>();
  const placed = jobs.map((job) => {
    const place = before.get(job.tenant) ?? 0;
    before.set(job.tenant, place + job.bytes);
    return { job, place };
  });
  return placed.sort((a, b) => a.place - b.place).map(({ job }) => job);
}
