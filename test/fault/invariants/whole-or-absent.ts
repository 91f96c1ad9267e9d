import type { Invariant } from '../checker.js';

/** A request is one transaction, also when its answer is lost; a key is one job, however often it is sent. */
export const invariant: Invariant = {
  name: 'whole-or-absent',
  rule: 'A submission in doubt is wholly there or wholly absent, a refused one is absent, and no order is there twice.',
  *check(seen) {
    const idsByOrder = new Map<number, string[]>();
    for (const job of seen.jobs) idsByOrder.set(job.n, [...(idsByOrder.get(job.n) ?? []), job.id]);
    for (const [n, ids] of idsByOrder) {
      if (ids.length > 1)
        yield { job: ids[0]!, detail: `order ${n} became ${ids.length} jobs: ${ids.join(', ')}` };
    }
    const taken = new Set(
      seen.submissions.flatMap(({ outcome, orders }) => (outcome === 'ok' ? orders.map(({ n }) => n) : [])),
    );
    for (const submission of seen.submissions) {
      const { outcome, orders } = submission;
      if (outcome === 'ok' || seen.mayBeLost.has(submission)) continue;
      const found = orders.filter(({ n }) => idsByOrder.has(n));
      const late = orders.filter(({ n }) => taken.has(n));
      if (late.length > 0) continue;
      if (outcome === 'refused' && found.length > 0) {
        yield {
          job: idsByOrder.get(found[0]!.n)![0]!,
          detail: `was refused and is there (order ${found[0]!.n})`,
        };
      }
      if (found.length > 0 && found.length < orders.length) {
        yield {
          job: idsByOrder.get(found[0]!.n)![0]!,
          detail: `${found.length} of ${orders.length} jobs of one submission are there`,
        };
      }
    }
  },
};
