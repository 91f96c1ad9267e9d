/**
 * When a job due at `runAt` moves into the live table: null for at once, else well before it is due. Jobs of the far
 * future thus never burden the table that every claim reads.
 */
export function admissionTime(runAt: number, now: number, thresholdMs: number): number | null {
  return runAt - now > thresholdMs ? runAt - Math.floor((thresholdMs * 2) / 3) : null;
}
