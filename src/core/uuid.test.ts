import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstUuidAt, forgetUuids, isUuid, uuidTime, uuidv7 } from './uuid.js';

/** The generator never goes back, so each test begins after the moments of the one before. */
let epoch = Date.UTC(2026, 0, 1);
function later(): number {
  epoch += 1_000_000;
  return epoch;
}

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('ids', () => {
  it('are UUIDs of version 7 that carry their moment', () => {
    const at = later();
    const id = uuidv7(at);
    expect(id).toMatch(V7);
    expect(isUuid(id)).toBe(true);
    expect(uuidTime(id)).toBe(at);
  });

  it('of one process are in order, also many thousands of one millisecond', () => {
    const at = later();
    const ids = Array.from({ length: 20_000 }, () => uuidv7(at));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual([...ids].sort());
    for (const id of ids) expect(V7.test(id)).toBe(true);
    // A millisecond holds at least 3,072 of them, so a burst runs ahead of the clock by little.
    expect(uuidTime(ids.at(-1)!) - at).toBeLessThanOrEqual(7);
  });

  it('stay in order when the clock steps back, and follow it again when it has caught up', () => {
    const at = later();
    const ids = [uuidv7(at), uuidv7(at - 5_000), uuidv7(at - 1), uuidv7(at), uuidv7(at + 1)];
    expect(ids).toEqual([...ids].sort());
    expect(ids.map((id) => uuidTime(id) - at)).toEqual([0, 0, 0, 0, 1]);
  });

  it('follow the clock back when those before are forgotten', () => {
    const at = later();
    uuidv7(at + 500_000);
    forgetUuids();
    expect(uuidTime(uuidv7(at))).toBe(at);
  });

  it('are in order however the clock moves', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 200 }), (steps) => {
        let at = later();
        const ids = steps.map((step) => {
          at += step;
          return uuidv7(at);
        });
        expect(ids).toEqual([...ids].sort());
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });

  it('are not to be guessed from one another', () => {
    const at = later();
    const tails = Array.from({ length: 2_000 }, () => uuidv7(at).slice(19));
    expect(new Set(tails).size).toBe(tails.length);
  });
});

describe('the first id of a moment', () => {
  it('lies after every id before it and not after any id from it on', () => {
    const at = later();
    const before = uuidv7(at - 1);
    const ids = Array.from({ length: 100 }, () => uuidv7(at));
    const first = firstUuidAt(at);
    expect(before < first).toBe(true);
    for (const id of ids) expect(first <= id).toBe(true);
    expect(isUuid(first)).toBe(true);
    expect(uuidTime(first)).toBe(at);
  });

  it('exists for moments before 1970 and between milliseconds', () => {
    expect(firstUuidAt(-5)).toBe(firstUuidAt(0));
    expect(firstUuidAt(1_000.9)).toBe(firstUuidAt(1_000));
  });
});

describe('a UUID', () => {
  it.each([
    '',
    'x',
    '0190f5e2-0000-7000-8000-00000000000',
    '0190f5e2-0000-7000-8000-0000000000000',
    '0190F5E2-0000-7000-8000-000000000000',
    '{0190f5e2-0000-7000-8000-000000000000}',
    '0190f5e200007000800000000000000000',
    '0190f5e2-0000-7000-8000-00000000000g',
    '0190f5e2-0000-7000-8000-000000000000\n',
  ])('is not %j', (text) => {
    expect(isUuid(text)).toBe(false);
  });
});
