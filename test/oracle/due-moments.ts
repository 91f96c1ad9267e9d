/** The rule of changes of the clocks, applied to what a walk saw. */

import type { Expression } from './expression.js';
import { DAY, type NamedTime, type Walked } from './walk.js';

export interface Policy {
  readonly gap: 'shift' | 'skip';
  readonly overlap: 'first' | 'last' | 'both';
}

/** Every combination of the two policies. */
export const POLICIES: readonly Policy[] = (['shift', 'skip'] as const).flatMap((gap) =>
  (['first', 'last', 'both'] as const).map((overlap) => ({ gap, overlap })),
);

/** The wall-clock times of a walk that an expression names. */
export function namedTimes(expression: Expression, walked: Walked): NamedTime[] {
  const dates = new Map<number, boolean>();
  return walked.times.filter(({ wall, fields }) => {
    if (!expression.namesTime(fields)) return false;
    const date = Math.floor(wall / DAY);
    if (!dates.has(date)) dates.set(date, expression.namesDate(fields));
    return dates.get(date);
  });
}

/** The moments of a walk at which an expression is due, in order, each once. */
export function dueMoments(
  expression: Expression,
  policy: Policy,
  walked: Walked,
  named: readonly NamedTime[] = namedTimes(expression, walked),
): number[] {
  const moments = new Set(
    named.flatMap((time) => (expression.everyHour ? time.moments : momentsByPolicy(time, policy))),
  );
  return [...moments]
    .filter((moment) => moment >= walked.from && moment < walked.to)
    .sort((one, other) => one - other);
}

function momentsByPolicy({ moments, shifted }: NamedTime, { gap, overlap }: Policy): readonly number[] {
  if (shifted !== undefined) return gap === 'shift' ? [shifted] : [];
  if (overlap === 'both') return moments;
  return [overlap === 'first' ? moments[0]! : moments.at(-1)!];
}
