import { createHash } from 'node:crypto';

/** A delay evenly spread over [0, jitterMs], and always the same for one occurrence of one schedule. */
export function jitterOf(scheduleId: string, at: number, jitterMs: number): number {
  const digest = createHash('sha256').update(`${scheduleId} ${at}`).digest();
  return Math.floor((digest.readUIntBE(0, 6) / 2 ** 48) * (jitterMs + 1));
}
