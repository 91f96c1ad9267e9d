import {
  type Answer,
  CALM,
  type CalmCall,
  type CalmWish,
  type Evidence,
  type HoldSample,
} from './evidence.js';

/** One broken promise: what was sent or went on, and what was seen. */
export interface Violation {
  readonly rule: Rule;
  /** The attack that ran. */
  readonly attack: string;
  readonly detail: string;
}

export type Rule =
  | 'no-500'
  | 'refused-by-problem'
  | 'answered'
  | 'served'
  | 'right-answer'
  | 'loop-free'
  | 'memory-bounded'
  | 'term-lasts'
  | 'nobody-dies'
  | 'calm-served'
  | 'watched';

/** The longest that the loop of a node may be held. */
export const MAX_HOLD_MS = 100;
/**
 * What must be left of a hold when the machine's share is taken off. A bucket tells its lower bound only, and the
 * timer sees a hold up to one period shorter than it was, so what is left is rather more.
 */
const LEFT_HOLD_MS = 75;
/** How much a node may hold, whatever is asked of it. */
export const MAX_RSS_MB = 1_024;
/** By how much more memory an attack must lead to than those before it. */
const WORTH_TELLING = 1.1;
/** How much longer than usual the calm client may wait. */
export const MAX_EXTRA_WAIT_MS = 1_000;
/** Fewer samples than this of a node or of the calm client prove nothing. */
const MIN_SAMPLES = 5;

/** What an attack may expect of its answers. */
export interface Expectation {
  /** Whether the cluster may say that it has too much to do; a small request is always to be answered. */
  readonly mayBeRefusedForLoad: boolean;
}

/** Holds one answer against what every answer promises. */
export function judgeAnswer(answer: Answer, attack: string, expectation: Expectation): Violation[] {
  const { status, request, node, failure, ms, contentType } = answer;
  const violation = (rule: Rule, seen: string): Violation[] => [
    { rule, attack, detail: `${request} at ${node}: ${seen} after ${Math.round(ms)} ms` },
  ];
  if (status === null) return violation('answered', `no answer, ${failure}`);
  if (status === 500) return violation('no-500', `500 ${briefly(answer.problem)}`);
  if (status < 400) return [];
  if (!/^application\/problem\+json\b/.test(contentType)) {
    return violation('refused-by-problem', `${status} as ${contentType || 'no type'}`);
  }
  const fault = answer.method === 'HEAD' ? null : faultOfProblem(answer);
  if (fault !== null) return violation('refused-by-problem', `${status} whose body ${fault}`);
  if (status > 500 && !expectation.mayBeRefusedForLoad)
    return violation('served', `${status} ${briefly(answer.problem)}`);
  return [];
}

/** What is wrong with the body of an error; null when nothing is. */
function faultOfProblem({ problem, status, requestId }: Answer): string | null {
  if (typeof problem !== 'object' || problem === null) return 'is no JSON object';
  const body = problem as Record<string, unknown>;
  for (const name of ['type', 'title', 'detail', 'code', 'requestId']) {
    if (typeof body[name] !== 'string' || body[name] === '') return `has no ${name}`;
  }
  if (body.status !== status) return `says status ${String(body.status)}`;
  if (body.requestId !== requestId) return 'has another request id than the header';
  return null;
}

/** Holds what was seen of the cluster against what it promises while it is attacked. */
export function judge(evidence: Evidence): Violation[] {
  return [
    ...judgeHolds(evidence),
    ...judgeMemory(evidence),
    ...judgeTerms(evidence),
    ...judgeDeaths(evidence),
    ...judgeCalm(evidence),
    ...judgeWatch(evidence),
  ];
}

/** The attack that ran at a moment, or had just ended. */
export function attackAt({ phases }: Evidence, at: number): string {
  return phases.findLast((phase) => phase.from <= at)?.kind ?? CALM;
}

/** A hold with what the machine had to do with it. */
export interface Hold {
  readonly sample: HoldSample;
  readonly atLeastMs: number;
  readonly times: number;
  /** The most of it that may have been the machine's doing. */
  readonly machineMs: number;
}

/** All holds that were too long, those included that the machine explains. */
export function holdsOf(evidence: Evidence): Hold[] {
  return evidence.holds.flatMap((sample) =>
    sample.held.map(({ atLeastMs, times }) => ({
      ...{ sample, atLeastMs, times },
      machineMs: machineShare(evidence, sample, atLeastMs),
    })),
  );
}

/** Whether what is left without the machine's share is still too long. */
export function isTooLong({ atLeastMs, machineMs }: Hold): boolean {
  return atLeastMs >= MAX_HOLD_MS && atLeastMs - machineMs > LEFT_HOLD_MS;
}

function judgeHolds(evidence: Evidence): Violation[] {
  return holdsOf(evidence)
    .filter(isTooLong)
    .map(({ sample, atLeastMs, times, machineMs }) => ({
      rule: 'loop-free' as const,
      attack: attackAt(evidence, sample.from),
      detail: `${sample.node} was held for ${atLeastMs} ms or more${times > 1 ? `, ${times} times` : ''}; the machine took at most ${Math.round(machineMs)} ms of it`,
    }));
}

/**
 * The most that the machine can have taken of a hold of this length: the time the thread waited for a processor and
 * the time stolen from the machine, or the delay of a process that had nothing to do, over the worst span of that
 * length around the two looks.
 */
function machineShare(
  { machine, control }: Evidence,
  { node, from, to }: HoldSample,
  spanMs: number,
): number {
  const begin = from - spanMs;
  const samples = machine.filter(({ at }) => at >= begin && at <= to);
  let taken = 0;
  for (let first = 0, last = 0; last < samples.length; last += 1) {
    while (first < last && samples[last]!.at - samples[first]!.at > spanMs + SAMPLE_EVERY_MS) first += 1;
    const [a, b] = [samples[first]!, samples[last]!];
    const waited = (b.nodes[node]?.waitedMs ?? 0) - (a.nodes[node]?.waitedMs ?? 0);
    taken = Math.max(taken, waited + b.stolenMs - a.stolenMs);
  }
  const idle = control.filter(({ at }) => at >= begin && at <= to).map(({ delayMs }) => delayMs);
  return Math.max(taken, ...idle, 0);
}

/** How often the onlooker looks at the machine. */
export const SAMPLE_EVERY_MS = 50;

/** A process rarely gives memory back, so an attack answers only for what it adds to the peak of those before it. */
function judgeMemory(evidence: Evidence): Violation[] {
  const nodes = new Set(evidence.machine.flatMap((sample) => Object.keys(sample.nodes)));
  return [...nodes].flatMap((node) => {
    const peaks = peaksOf(evidence, node);
    return peaks.flatMap(({ attack, mb }, index): Violation[] => {
      const before = peaks.slice(0, index).reduce((most, peak) => Math.max(most, peak.mb), 0);
      if (mb <= MAX_RSS_MB || mb < before * WORTH_TELLING) return [];
      const detail = `${node} came to ${Math.round(mb)} MB, from ${Math.round(before)}; ${MAX_RSS_MB} are allowed`;
      return [{ rule: 'memory-bounded', attack, detail }];
    });
  });
}

/** The most that a node held during each attack, in their order. */
function peaksOf(evidence: Evidence, node: string): { attack: string; mb: number }[] {
  const peaks: { attack: string; mb: number }[] = [];
  for (const { at, nodes } of evidence.machine) {
    const [attack, mb, last] = [attackAt(evidence, at), nodes[node]?.rssMb ?? 0, peaks.at(-1)];
    if (last?.attack === attack) last.mb = Math.max(last.mb, mb);
    else peaks.push({ attack, mb });
  }
  return peaks;
}

function judgeTerms(evidence: Evidence): Violation[] {
  return evidence.terms.slice(1).map(({ epoch, holder, at }, index) => ({
    rule: 'term-lasts',
    attack: attackAt(evidence, at),
    detail: `epoch ${evidence.terms[index]!.epoch} gave way to ${epoch}, of ${holder}`,
  }));
}

function judgeDeaths(evidence: Evidence): Violation[] {
  return evidence.deaths.map(({ member, at, detail }) => ({
    rule: 'nobody-dies',
    attack: attackAt(evidence, at),
    detail: `${member} ended: ${detail}`,
  }));
}

function judgeCalm(evidence: Evidence): Violation[] {
  const usual = usualWaits(evidence);
  return evidence.calm.flatMap((call): Violation[] => {
    const { what, node, from, to, error } = call;
    const attack = attackAt(evidence, from);
    const waitedMs = to - from;
    if (error !== null) {
      const detail = `the calm client's ${what} at ${node}: ${error} after ${Math.round(waitedMs)} ms`;
      return [{ rule: 'calm-served', attack, detail }];
    }
    const machineMs = machineDelay(evidence, call);
    if (waitedMs - usual[what] - machineMs <= MAX_EXTRA_WAIT_MS) return [];
    const detail = `the calm client's ${what} at ${node} took ${Math.round(waitedMs)} ms; usual are ${Math.round(usual[what])}`;
    return [{ rule: 'calm-served', attack, detail }];
  });
}

/**
 * How long the machine may have held up a wish: the processes that it needs waited for a processor, time was stolen,
 * and a process with nothing to do came late. A job needs all nodes, anything else the node that is asked.
 */
function machineDelay({ machine, control }: Evidence, { what, node: asked, from, to }: CalmCall): number {
  const samples = machine.filter(({ at }) => at >= from - SAMPLE_EVERY_MS && at <= to + SAMPLE_EVERY_MS);
  const [first, last] = [samples[0], samples.at(-1)];
  const late = control
    .filter(({ at }) => at >= from && at <= to)
    .reduce((sum, { delayMs }) => sum + delayMs, 0);
  if (!first || !last) return late;
  const waited = Object.entries(last.nodes)
    .filter(([node]) => what === 'job' || node === asked)
    .map(([node, { waitedMs }]) => waitedMs - (first.nodes[node]?.waitedMs ?? waitedMs));
  return late + last.stolenMs - first.stolenMs + waited.reduce((sum, ms) => sum + ms, 0);
}

/**
 * The longest waits before the first attack, by wish: what is usual on this machine. The first half of that time is
 * left out, because processes that have just started are slower than they ever are again.
 */
export function usualWaits({ calm, phases }: Evidence): Record<CalmWish, number> {
  const before = phases.find(({ kind }) => kind === CALM);
  const usual: Record<CalmWish, number> = { job: 0, livez: 0, list: 0 };
  if (!before) return usual;
  const warm = (before.from + before.to) / 2;
  for (const { what, from, to, error } of calm) {
    if (from >= warm && to <= before.to && error === null) usual[what] = Math.max(usual[what], to - from);
  }
  return usual;
}

/** An attack that nobody watched has proven nothing. */
function judgeWatch(evidence: Evidence): Violation[] {
  const missing: string[] = [];
  const nodes = Object.keys(evidence.machine[0]?.nodes ?? {});
  if (nodes.length === 0) missing.push('the processes of the nodes');
  for (const node of nodes) {
    const looks = evidence.holds.filter((sample) => sample.node === node).length;
    if (looks < MIN_SAMPLES) missing.push(`the event loop of ${node} (${looks} looks)`);
  }
  for (const what of ['job', 'livez', 'list'] as const) {
    const calls = evidence.calm.filter((call) => call.what === what).length;
    if (calls < MIN_SAMPLES) missing.push(`the calm client's ${what} (${calls} calls)`);
  }
  return missing.map((detail) => ({ rule: 'watched', attack: CALM, detail: `not seen: ${detail}` }));
}

const MAX_TEXT = 200;

function briefly(value: unknown): string {
  return (JSON.stringify(value) ?? '').slice(0, MAX_TEXT);
}
