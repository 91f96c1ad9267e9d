import { describe, expect, it } from 'vitest';
import { Turns } from './turns.js';

const marked = new Set<string>();
const newTurns = () => new Turns((jobId) => marked.has(jobId));

describe('turns', () => {
  it('are had by one at a time, per job', () => {
    const turns = newTurns();
    expect(turns.tryTake('a')).toBe(true);
    expect(turns.tryTake('a')).toBe(false);
    expect(turns.tryTake('b')).toBe(true);
    expect([turns.has('a'), turns.has('c')]).toEqual([true, false]);
    turns.release('a');
    expect(turns.has('a')).toBe(false);
    expect(turns.tryTake('a')).toBe(true);
  });

  it('order those who wait, none of them together', async () => {
    const turns = newTurns();
    const events: string[] = [];
    const inTurn = async (name: string) => {
      while (!turns.tryTake('job')) await turns.untilFree('job');
      events.push(`${name} begins`);
      await Promise.resolve();
      events.push(`${name} ends`);
      turns.release('job');
    };
    await Promise.all([inTurn('a'), inTurn('b'), inTurn('c')]);
    expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    expect(turns.has('job')).toBe(false);
  });

  it('tell those who only want to know when they are given back', async () => {
    const turns = newTurns();
    await turns.untilFree('job');
    turns.tryTake('job');
    let free = false;
    const waiting = turns.untilFree('job').then(() => {
      free = true;
    });
    await Promise.resolve();
    expect(free).toBe(false);
    turns.release('job');
    await waiting;
    expect(turns.has('job')).toBe(false);
  });

  it('can be given back without having been taken', () => {
    const turns = newTurns();
    turns.release('job');
    expect(turns.tryTake('job')).toBe(true);
  });

  it('of a marked job are taken until its mark is gone and those who wait are told', async () => {
    const turns = newTurns();
    marked.add('job');
    expect([turns.has('job'), turns.isTaken('job'), turns.tryTake('job')]).toEqual([true, false, false]);
    const waiting = turns.untilFree('job');
    marked.delete('job');
    turns.wake('job');
    await waiting;
    expect(turns.tryTake('job')).toBe(true);
  });

  it('are waited for no longer when the term is over', async () => {
    const turns = newTurns();
    turns.tryTake('job');
    const waiting = turns.untilFree('job');
    turns.stop(new Error('over'));
    await expect(waiting).rejects.toThrow('over');
    await expect(turns.untilFree('other')).rejects.toThrow('over');
  });
});
