/**
 * A scale of time on which short things beside long ones can still be seen: between two moments at which anything happens
 * there is at least a little room, whether it was a millisecond or a day.
 */

/** The part of the width that the time between two moments has at least; of many moments less. */
const LEAST_PART = 0.012;
const LEAST_OF_ALL = 0.4;

/** Where a moment is, from 0 to 1. */
export type TimeScale = (at: number) => number;

/** The scale for these moments. */
export function timeScale(moments: readonly number[]): TimeScale {
  const points = [...new Set(moments)].sort((a, b) => a - b);
  const first = points[0] ?? 0;
  const span = (points.at(-1) ?? 0) - first;
  if (span <= 0) return () => 0;
  const gaps = points.length - 1;
  const least = Math.min(LEAST_PART, LEAST_OF_ALL / gaps);
  const parts = points.slice(1).map((point, i) => least + ((1 - least * gaps) * (point - points[i]!)) / span);
  const starts = [0];
  for (const part of parts) starts.push(starts.at(-1)! + part);
  return (at) => {
    if (at <= first) return 0;
    const next = points.findIndex((point) => point >= at);
    if (next < 0) return 1;
    const before = points[next - 1]!;
    return starts[next - 1]! + (parts[next - 1]! * (at - before)) / (points[next]! - before);
  };
}
