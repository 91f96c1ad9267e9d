/**
 * The one clock of a run: the machine's monotonic time in milliseconds, which all processes on it share. Wrong
 * wall clocks, which are among the faults, do not touch it.
 */
export function monotonic(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
