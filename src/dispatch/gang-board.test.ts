import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { Gang } from './gang.js';
import { GangBoard } from './gang-board.js';

function boardAndClock() {
  const clock = new TestClock();
  const board = new GangBoard(clock);
  const add = (id: string, inMs: number) => {
    const dueAt = clock.now() + inMs;
    const gang = new Gang({ id, tenant: 't', onFailure: 'continue', dueAt, startTimeoutMs: null }, []);
    board.add(gang);
    return gang;
  };
  return { clock, board, add };
}

const ids = (gangs: readonly Gang[]) => gangs.map(({ id }) => id);

describe('the board of gangs', () => {
  it('keeps those that are due by age, in whatever order they come', () => {
    const { board, add } = boardAndClock();
    for (const [id, inMs] of [['c', -1], ['a', -3], ['d', 0], ['b', -2], ['a2', -3]] as const) add(id, inMs); // biome-ignore format: short
    expect(ids(board.waiting)).toEqual(['a', 'a2', 'b', 'c', 'd']);
  });

  it('is at rest while no gang is due, and knows those that will be', () => {
    const { clock, board, add } = boardAndClock();
    const late = add('late', 2_000);
    const soon = add('soon', 1_000);
    expect(board).toMatchObject({ isWaiting: false, waitingCount: 2, nextDueAt: soon.dueAt });
    expect(board.find('late')).toBe(late);
    clock.advance(1_000);
    board.takeDue();
    expect(ids(board.waiting)).toEqual(['soon']);
    expect(board).toMatchObject({ isWaiting: true, nextDueAt: late.dueAt });
  });

  it('forgets a gang once, whether it is due or not', () => {
    const { clock, board, add } = boardAndClock();
    for (const gang of [add('due', 0), add('early', 1_000)]) {
      expect(board.remove(gang)).toBe(true);
      expect(board.remove(gang)).toBe(false);
      expect(board.find(gang.id)).toBeUndefined();
    }
    clock.advance(1_000);
    board.takeDue();
    expect(board).toMatchObject({ isWaiting: false, waitingCount: 0, nextDueAt: null });
  });
});
