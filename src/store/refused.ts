/**
 * What a statement over many jobs answers: how many it changed, and which only where it did not change them all. That
 * a thousand ids went through as expected takes one number to say, not a thousand rows to send and read.
 */
export interface Changed extends Record<string, unknown> {
  readonly changed: number;
  readonly ids: readonly string[] | null;
}

/** The answer of a statement that changed the rows of `part`, of which there should have been `expected`. */
export function changedRows(part: string, id: string, expected: string): string {
  return `SELECT count(*) AS changed, CASE WHEN count(*) < ${expected} THEN array_agg(${id}) END AS ids FROM ${part}`;
}

/** The jobs that a statement was to change and did not. */
export function refusedOf(
  asked: readonly { readonly id: string }[],
  answer: Changed | undefined,
): ReadonlySet<string> {
  if (answer?.changed === asked.length) return NONE;
  const done = new Set(answer?.ids);
  return new Set(asked.map(({ id }) => id).filter((id) => !done.has(id)));
}

const NONE: ReadonlySet<string> = new Set();
