import { describe, expect, it } from 'vitest';
import { type MemberGroup, Placement } from './gang-placement.js';

function fill(placement: Placement, capacities: readonly number[]): void {
  const filling = placement.fill((pool) => capacities[pool]!);
  while (!filling.next().done);
}

function placed(groups: readonly MemberGroup[], capacities: readonly number[]): Placement {
  const placement = new Placement(groups);
  fill(placement, capacities);
  return placement;
}

describe('a placement', () => {
  it('finds a place for every member if there is one, whatever places the first ones took', () => {
    const picky = { count: 2, pools: [0] };
    const easy = { count: 2, pools: [0, 1] };
    const pickiest = { count: 1, pools: [1] };
    const placement = placed([easy, pickiest, picky], [2, 3]);
    expect(placement.isWhole).toBe(true);
    expect([...placement.membersIn(0)]).toEqual([[2, 2]]);
    expect(new Map(placement.membersIn(1))).toEqual(new Map([[0, 2], [1, 1]])); // biome-ignore format: short
  });

  it('names a group that finds no place', () => {
    const placement = placed([{ count: 1, pools: [0] }, { count: 2, pools: [0] }], [2]); // biome-ignore format: short
    expect(placement.isWhole).toBe(false);
    expect(placement.lacking).toBe(1);
  });

  it('keeps every slot that it uses when capacities grow', () => {
    const placement = placed([{ count: 2, pools: [0, 1] }, { count: 1, pools: [1] }], [0, 2]); // biome-ignore format: short
    expect(placement.used.get(1)).toBe(2);
    fill(placement, [5, 2]);
    expect(placement.isWhole).toBe(true);
    expect(placement.used.get(1)).toBe(2);
  });
});
