/** Room for what a node can hold of one thing. One tenant has half of it at most, so that it cannot shut out the others. */
export class TenantRoom {
  private taken = 0;
  private readonly takenBy = new Map<string, number>();

  constructor(private readonly most: number) {}

  /** Takes as much of the room for the tenant, to be given back later; false when there is not enough left. */
  tryTake(tenant: string, amount = 1): boolean {
    const ofTenant = (this.takenBy.get(tenant) ?? 0) + amount;
    if (this.taken + amount > this.most || ofTenant > Math.ceil(this.most / 2)) return false;
    this.taken += amount;
    this.takenBy.set(tenant, ofTenant);
    return true;
  }

  giveBack(tenant: string, amount = 1): void {
    this.taken -= amount;
    const left = this.takenBy.get(tenant)! - amount;
    if (left > 0) this.takenBy.set(tenant, left);
    else this.takenBy.delete(tenant);
  }
}
