/** Where a schedule is found. */
export function schedulePath(name: string): string {
  return `/v1/schedules/${encodeURIComponent(name)}`;
}
