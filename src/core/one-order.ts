/** Signals this close together are one order: some supervisors signal a process and then its group. */
export const ONE_ORDER_MS = 200;
