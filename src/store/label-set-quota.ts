import { type Queryable, run, statement } from './database.js';
import { hasLabels, type Named, needsKey } from './needs-digest.js';
import { RefusedNamesError } from './refused-names.js';

/** How many label sets each tenant has, but no more than the number that matters. */
const COUNT_LABEL_SETS = statement(
  'count-label-sets',
  `
    SELECT u.tenant, (
      SELECT count(*) FROM (
        SELECT 1 FROM punctual.needs n WHERE n.tenant = u.tenant AND n.labels <> '' LIMIT $2) sets) AS sets
    FROM unnest($1::text[]) u(tenant)`,
);

/** Refuses label sets beyond what a tenant may have. Two nodes that add at once may together exceed it a little. */
export class LabelSetQuota {
  constructor(
    private readonly db: Queryable,
    private readonly maxLabelSets: number,
    /** Finds the needs with these signatures that exist; `place` counts from one. */
    private readonly find: (signatures: readonly Buffer[]) => Promise<readonly { readonly place: number }[]>,
  ) {}

  /** Throws if a tenant would have too many sets. */
  async check(unknown: readonly Named[], signatures: readonly Buffer[]): Promise<void> {
    const { maxLabelSets } = this;
    const labelled = unknown.map((each, i) => ({ ...each, signature: signatures[i]! }));
    const sets = labelled.filter(hasLabels);
    if (sets.length === 0) return;
    const present = await this.find(sets.map(({ signature }) => signature));
    const isPresent = new Set(present.map(({ place }) => place - 1));
    const added = new Map<string, number>();
    for (const [i, { tenant }] of sets.entries()) {
      if (!isPresent.has(i)) added.set(tenant, (added.get(tenant) ?? 0) + 1);
    }
    if (added.size === 0) return;
    const counts = await run<{ tenant: string; sets: number }>(this.db, COUNT_LABEL_SETS, [
      [...added.keys()],
      maxLabelSets,
    ]);
    const room = new Map(counts.map(({ tenant, sets }) => [tenant, maxLabelSets - sets]));
    const refused = sets.filter(({ tenant }, i) => {
      if (isPresent.has(i)) return false;
      const left = room.get(tenant) ?? maxLabelSets;
      room.set(tenant, left - 1);
      return left <= 0;
    });
    if (refused.length === 0) return;
    throw new LabelSetsError(refused[0]!.tenant, maxLabelSets, new Set(refused.map(needsKey)));
  }
}

/** Tenants have as many label sets as they may have. */
export class LabelSetsError extends RefusedNamesError {
  constructor(tenant: string, maxLabelSets: number, refused: ReadonlySet<string>) {
    super(
      `Tenant ${tenant} may use ${maxLabelSets} different sets of labels in \`requires\`; those that no job has used for a while make room.`,
      (named) => refused.has(needsKey(named)),
      { quota: { name: 'labelSets', limit: maxLabelSets } },
    );
  }
}
