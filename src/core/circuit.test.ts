import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Circuit, type CircuitRules } from './circuit.js';

const RULES: CircuitRules = { threshold: 5, firstPauseMs: 5_000, longestPauseMs: 300_000 };

/** Lets so many calls fail at a moment. */
function fail(circuit: Circuit, count: number, now: number): void {
  for (let i = 0; i < count; i++) circuit.failed(`call-${i}`, now, 0);
}

describe('a circuit', () => {
  it('opens with the failure that reaches the threshold, and not before', () => {
    const circuit = new Circuit(RULES);
    fail(circuit, 4, 0);
    expect(circuit.stateAt(0)).toBe('closed');
    expect(circuit.failed('fifth', 0, 0)).toBe(true);
    expect(circuit.stateAt(4_999)).toBe('open');
    expect(circuit.stateAt(5_000)).toBe('half-open');
  });

  it('lets an answer in between begin the count anew', () => {
    const circuit = new Circuit(RULES);
    fail(circuit, 4, 0);
    expect(circuit.answered()).toBe(false);
    fail(circuit, 4, 0);
    expect(circuit.stateAt(0)).toBe('closed');
  });

  it('doubles its pause with each failed probe, up to the longest, and begins anew after an answer', () => {
    const circuit = new Circuit(RULES);
    const pauses: number[] = [];
    let now = 0;
    fail(circuit, 5, now);
    for (let i = 0; i < 9; i++) {
      pauses.push(circuit.openUntil! - now);
      now = circuit.openUntil!;
      circuit.began('probe', now);
      expect(circuit.stateAt(now)).toBe('probing');
      circuit.failed('probe', now, 0);
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => 1_000 * seconds));
    expect(circuit.answered()).toBe(true);
    fail(circuit, 5, now);
    expect(circuit.openUntil! - now).toBe(5_000);
  });

  it('is not kept open for longer by calls that were out when it opened', () => {
    const circuit = new Circuit(RULES);
    fail(circuit, 100, 0);
    expect(circuit.openUntil).toBe(5_000);
    circuit.began('probe', 5_000);
    fail(circuit, 10, 5_001);
    expect(circuit.stateAt(5_001)).toBe('probing');
  });

  it('lets the next call be the probe when the probe ends without telling anything', () => {
    const circuit = new Circuit(RULES);
    fail(circuit, 5, 0);
    circuit.began('lost', 6_000);
    circuit.over('another');
    expect(circuit.stateAt(6_000)).toBe('probing');
    circuit.over('lost');
    expect(circuit.stateAt(6_000)).toBe('half-open');
  });
});

/** What happens to an origin: time passes, a call is tried, or the oldest or newest call that is out ends. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 8_000 }) }),
    fc.record({ kind: fc.constant('call' as const) }),
    fc.record({
      kind: fc.constant('end' as const),
      newest: fc.boolean(),
      news: fc.constantFrom('down' as const, 'down' as const, 'answered' as const, 'nothing' as const),
      random: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  ),
  { maxLength: 200 },
);

it('does what a model does that knows its calls and its last pause only', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), (all, threshold) => {
      const rules = { ...RULES, threshold, longestPauseMs: 30_000 };
      const circuit = new Circuit(rules);
      const out: { id: string; isProbe: boolean }[] = [];
      const model = { failures: 0, until: null as number | null, pauses: 0 };
      let now = 1_000;
      let made = 0;
      for (const step of all) {
        const isProbing = model.until !== null && out.some(({ isProbe }) => isProbe);
        const isOpen = model.until !== null && now < model.until;
        if (step.kind === 'pass') now += step.ms;
        else if (step.kind === 'call') {
          const mayCall = !isProbing && !isOpen;
          expect(['closed', 'half-open'].includes(circuit.stateAt(now))).toBe(mayCall);
          if (!mayCall) continue;
          made += 1;
          out.push({ id: `${made}`, isProbe: model.until !== null });
          circuit.began(`${made}`, now);
        } else {
          const call = step.newest ? out.pop() : out.shift();
          if (!call) continue;
          if (step.news === 'nothing') circuit.over(call.id);
          if (step.news === 'answered') {
            expect(circuit.answered()).toBe(model.until !== null);
            Object.assign(model, { failures: 0, until: null, pauses: 0 });
            for (const other of out) other.isProbe = false;
          }
          if (step.news === 'down') {
            model.failures += 1;
            const opens = model.until === null && model.failures >= threshold;
            expect(circuit.failed(call.id, now, step.random)).toBe(opens);
            if (opens || call.isProbe) {
              const longest = Math.min(30_000, 5_000 * 2 ** model.pauses);
              const pauseMs = circuit.openUntil! - now;
              expect(pauseMs).toBeLessThanOrEqual(longest);
              expect(pauseMs).toBeGreaterThanOrEqual(0.75 * longest);
              model.until = circuit.openUntil;
              model.pauses += 1;
            }
          }
        }
        expect(circuit.openUntil).toBe(model.until);
        expect(circuit.failures).toBe(model.failures);
      }
    }),
  );
});
