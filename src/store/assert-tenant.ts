/** Throws when a row belongs to another tenant than the one that it was read for: a mistake of ours that must not be shown. */
export function assertTenant(tenant: string, row: { readonly tenant: string | null }): void {
  if (row.tenant !== tenant) throw new Error(`a row of another tenant was read for ${tenant}`);
}
