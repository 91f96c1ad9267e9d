import { describe, expect, it } from 'vitest';
import type { Answer, Evidence, MachineSample } from './evidence.js';
import { judge, judgeAnswer, MAX_EXTRA_WAIT_MS, MAX_RSS_MB, type Rule } from './judge.js';

const STRICT = { mayBeRefusedForLoad: false };
const REQUEST_ID = 'r-1';

/** A refusal as it should be, changed by what a test plants. */
function refusal(change: Partial<Answer> = {}): Answer {
  const status = change.status ?? 422;
  return {
    ...{ request: 'POST /v1/jobs [a test]', method: 'POST', node: 'n1', status, ms: 3, failure: null },
    ...{ contentType: 'application/problem+json; charset=utf-8', requestId: REQUEST_ID },
    problem: {
      type: 'urn:x',
      title: 't',
      status,
      detail: 'd',
      code: 'INVALID_REQUEST',
      requestId: REQUEST_ID,
    },
    ...change,
  };
}

const rulesOf = (answer: Answer, expectation = STRICT) =>
  judgeAnswer(answer, 'test', expectation).map(({ rule }) => rule);

describe('an answer', () => {
  it('that is a success or a proper refusal is fine', () => {
    expect(rulesOf(refusal())).toEqual([]);
    expect(rulesOf(refusal({ status: 200, contentType: 'application/json', problem: null }))).toEqual([]);
    expect(rulesOf(refusal({ status: 404, method: 'HEAD', problem: '' }))).toEqual([]);
  });

  it.each<[string, Partial<Answer>, Rule]>([
    ['is a 500', { status: 500 }, 'no-500'],
    ['never comes', { status: null, failure: 'socket hang up' }, 'answered'],
    ['is an error as plain text', { contentType: 'text/plain' }, 'refused-by-problem'],
    ['is an error without a type', { contentType: '', status: 400 }, 'refused-by-problem'],
    ['is an error without a body', { problem: '' }, 'refused-by-problem'],
    ['is an error without a code', { problem: { status: 422 } }, 'refused-by-problem'],
    ['has another request id in its body', { requestId: 'r-2' }, 'refused-by-problem'],
    ['is a 503 to a small request', { status: 503 }, 'served'],
  ])('that %s is a violation, which names the request', (_, change, rule) => {
    const [violation, ...others] = judgeAnswer(refusal(change), 'test', STRICT);
    expect(others).toEqual([]);
    expect(violation).toMatchObject({ rule, attack: 'test' });
    expect(violation!.detail).toContain('POST /v1/jobs [a test] at n1');
  });

  it('may be a 503 where there is too much to do, but never a 500', () => {
    const load = { mayBeRefusedForLoad: true };
    expect(rulesOf(refusal({ status: 503 }), load)).toEqual([]);
    expect(rulesOf(refusal({ status: 500 }), load)).toEqual(['no-500']);
  });
});

const RULES_OF_THE_MACHINE = { waitedMs: 0, rssMb: 200 };

/** A second of calm and two attacks of a second each, watched as it should be, in which nothing goes wrong. */
function good(): Evidence & { machine: MachineSample[] } {
  const ticks = Array.from({ length: 61 }, (_, n) => n * 50);
  return {
    phases: [
      { kind: 'calm', from: 0, to: 1_000 },
      { kind: 'first', from: 1_000, to: 2_000 },
      { kind: 'second', from: 2_000, to: 3_000 },
    ],
    calm: ticks.flatMap((from) =>
      (['job', 'livez', 'list'] as const).map((what) => ({
        ...{ what, node: 'n1', from, to: from + 20, error: null },
      })),
    ),
    holds: ticks
      .slice(1)
      .flatMap((to) => ['n1', 'n2'].map((node) => ({ node, from: to - 50, to, held: [] }))),
    machine: ticks.map((at) => ({
      ...{ at, stolenMs: 0 },
      nodes: { n1: RULES_OF_THE_MACHINE, n2: RULES_OF_THE_MACHINE },
    })),
    control: [],
    terms: [{ epoch: 1, holder: 'n1.1', at: -100 }],
    deaths: [],
  };
}

const heldFor = (atLeastMs: number) => [
  { node: 'n1', from: 1_400, to: 1_650, held: [{ atLeastMs, times: 1 }] },
];

/** The same machine, in which the main thread of n1 waits for a processor all the time from a moment on. */
function waiting(evidence: Evidence, share: number): MachineSample[] {
  return evidence.machine.map(({ at, stolenMs, nodes }) => ({
    ...{ at, stolenMs },
    nodes: { ...nodes, n1: { rssMb: 200, waitedMs: at * share } },
  }));
}

describe('what was seen', () => {
  it('of a cluster that holds out is fine', () => {
    expect(judge(good())).toEqual([]);
  });

  it.each<[string, (evidence: Evidence) => Partial<Evidence>, Rule, string]>([
    ['a loop that was held', ({ holds }) => ({ holds: [...holds, ...heldFor(150)] }), 'loop-free', 'first'],
    [
      'a loop that was held for the bound',
      ({ holds }) => ({ holds: [...holds, ...heldFor(100)] }),
      'loop-free',
      'first',
    ],
    [
      'a long hold of which the machine explains a part',
      (evidence) => ({ holds: [...evidence.holds, ...heldFor(500)], machine: waiting(evidence, 0.5) }),
      'loop-free',
      'first',
    ],
    [
      'memory beyond the bound',
      ({ machine }) => ({
        machine: [
          ...machine,
          { at: 2_500, stolenMs: 0, nodes: { n2: { rssMb: MAX_RSS_MB + 1, waitedMs: 0 } } },
        ],
      }),
      'memory-bounded',
      'second',
    ],
    [
      'a change of term',
      ({ terms }) => ({ terms: [...terms, { epoch: 2, holder: 'n2.1', at: 1_500 }] }),
      'term-lasts',
      'first',
    ],
    [
      'a term that the same node took again',
      ({ terms }) => ({ terms: [...terms, { epoch: 2, holder: 'n1.1', at: 2_500 }] }),
      'term-lasts',
      'second',
    ],
    [
      'the end of a process',
      () => ({ deaths: [{ member: 'n1.1', at: 1_200, detail: 'SIGABRT' }] }),
      'nobody-dies',
      'first',
    ],
    [
      'an error of the calm client',
      ({ calm }) => ({ calm: [...calm, { what: 'list', node: 'n1', from: 2_100, to: 2_110, error: '503' }] }),
      'calm-served',
      'second',
    ],
    [
      'a calm client that waits',
      ({ calm }) => ({
        calm: [
          ...calm,
          { what: 'livez', node: 'n1', from: 1_100, to: 1_200 + MAX_EXTRA_WAIT_MS, error: null },
        ],
      }),
      'calm-served',
      'first',
    ],
    [
      'a node that nobody looked at',
      ({ holds }) => ({ holds: holds.filter(({ node }) => node === 'n1') }),
      'watched',
      'calm',
    ],
    [
      'a calm client that never got to its jobs',
      ({ calm }) => ({ calm: calm.filter(({ what }) => what !== 'job') }),
      'watched',
      'calm',
    ],
    ['no process seen at all', () => ({ machine: [] }), 'watched', 'calm'],
  ])('with %s is a violation under the name of its attack', (_, plant, rule, attack) => {
    const evidence = good();
    const violations = judge({ ...evidence, ...plant(evidence) });
    expect(violations.map((violation) => [violation.rule, violation.attack])).toEqual([[rule, attack]]);
  });

  it('of a hold is excused when the node waited for a processor, time was stolen, or an idle process was held too', () => {
    const evidence = good();
    const holds = [...evidence.holds, ...heldFor(150)];
    const stolen = evidence.machine.map((sample) => ({ ...sample, stolenMs: sample.at >= 1_450 ? 140 : 0 }));
    expect(judge({ ...evidence, holds, machine: waiting(evidence, 1) })).toEqual([]);
    expect(judge({ ...evidence, holds, machine: stolen })).toEqual([]);
    expect(judge({ ...evidence, holds, control: [{ at: 1_500, delayMs: 140 }] })).toEqual([]);
    // What the machine did to somebody else, or at another time, is no excuse.
    expect(judge({ ...evidence, holds, control: [{ at: 2_500, delayMs: 140 }] })).toHaveLength(1);
    const other = evidence.machine.map((sample) => ({
      ...sample,
      nodes: { ...sample.nodes, n2: { rssMb: 200, waitedMs: sample.at } },
    }));
    expect(judge({ ...evidence, holds, machine: other })).toHaveLength(1);
  });

  it('of memory that an earlier attack took is laid to that one alone', () => {
    const evidence = good();
    const machine = evidence.machine.map((sample) => ({
      ...sample,
      nodes: { n1: { rssMb: sample.at < 1_200 ? 200 : 2 * MAX_RSS_MB, waitedMs: 0 }, n2: sample.nodes.n2! },
    }));
    expect(judge({ ...evidence, machine }).map(({ attack }) => attack)).toEqual(['first']);
    const more = { at: 2_990, stolenMs: 0, nodes: { n1: { rssMb: 3 * MAX_RSS_MB, waitedMs: 0 } } };
    expect(judge({ ...evidence, machine: [...machine, more] }).map(({ attack }) => attack)).toEqual([
      'first',
      'second',
    ]);
  });

  it('of a wait is excused as far as the machine held everything up', () => {
    const evidence = good();
    const late = { what: 'job' as const, node: 'n1', from: 1_100, to: 2_900, error: null };
    const calm = [...evidence.calm, late];
    expect(judge({ ...evidence, calm })).toHaveLength(1);
    expect(judge({ ...evidence, calm, machine: waiting(evidence, 1) })).toEqual([]);
  });
});
