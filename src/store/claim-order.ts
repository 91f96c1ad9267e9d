/**
 * The order in which statements that lock several claims take them. With one order for all of them, two such
 * statements may wait for each other's claims but never in a circle.
 */
export function inClaimOrder<T extends { readonly id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}
