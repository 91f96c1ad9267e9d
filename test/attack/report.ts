import type { CalmWish, Evidence } from './evidence.js';
import { attackAt, holdsOf, isTooLong, type Violation } from './judge.js';
import type { Outcome } from './run.js';

/** How many lines of one rule under one attack are shown; the rest is counted. */
const SHOWN_OF_EACH = 5;

/** What the attacks came to, for people. */
export function describe({ evidence, violations, stolen }: Outcome): string {
  return [
    ...describeCalm(evidence),
    `holds          ${describeHolds(evidence)}`,
    `machine        stolen time ${stolen}, worst delay of an idle process ${Math.round(worstControl(evidence))} ms`,
    `memory         ${describeMemory(evidence)}`,
    `terms          ${evidence.terms.map(({ epoch, holder }) => `${epoch} of ${holder}`).join(', ')}`,
    `violations     ${violations.length}`,
  ].join('\n');
}

/** One line for each violation, those of the same kind together and cut short. */
export function listViolations(violations: readonly Violation[]): string[] {
  const groups = new Map<string, Violation[]>();
  for (const violation of violations) {
    const key = `${violation.attack} · ${violation.rule}`;
    groups.set(key, [...(groups.get(key) ?? []), violation]);
  }
  return [...groups].flatMap(([key, group]) => [
    ...group.slice(0, SHOWN_OF_EACH).map(({ detail }) => `${key}: ${detail}`),
    ...(group.length > SHOWN_OF_EACH ? [`${key}: ${group.length - SHOWN_OF_EACH} more`] : []),
  ]);
}

function describeCalm(evidence: Evidence): string[] {
  return (['job', 'livez', 'list'] as const satisfies readonly CalmWish[]).map((what) => {
    const calls = evidence.calm.filter((call) => call.what === what);
    const waits = calls.map(({ from, to }) => to - from).sort((a, b) => a - b);
    const at = (share: number) => Math.round(waits[Math.max(0, Math.ceil(waits.length * share) - 1)] ?? 0);
    const errors = calls.filter(({ error }) => error !== null).length;
    return `calm ${what.padEnd(9)} ${calls.length} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms, ${errors} errors`;
  });
}

function describeHolds(evidence: Evidence): string {
  const holds = holdsOf(evidence);
  const counted = holds.filter(isTooLong);
  const worst = counted.reduce<(typeof counted)[number] | null>(
    (most, hold) => (most === null || hold.atLeastMs > most.atLeastMs ? hold : most),
    null,
  );
  const excused = holds.length - counted.length;
  return `${counted.length} too long${worst ? `, worst ${worst.atLeastMs} ms or more (${worst.sample.node}, ${attackAt(evidence, worst.sample.from)})` : ''}; ${excused} more that the machine explains`;
}

function describeMemory({ machine }: Evidence): string {
  const peaks = new Map<string, number>();
  for (const { nodes } of machine) {
    for (const [node, { rssMb }] of Object.entries(nodes))
      peaks.set(node, Math.max(rssMb, peaks.get(node) ?? 0));
  }
  // Only Linux tells it in a file.
  if ([...peaks.values()].every((mb) => mb === 0)) return 'not to be seen on this system';
  return [...peaks].map(([node, mb]) => `${node} at most ${Math.round(mb)} MB`).join(', ');
}

function worstControl({ control }: Evidence): number {
  return control.reduce((most, { delayMs }) => Math.max(most, delayMs), 0);
}
