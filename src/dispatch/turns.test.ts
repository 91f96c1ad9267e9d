import { describe, expect, it } from 'vitest';
import { Turns } from './turns.js';

describe('turns', () => {
  it('are had by one at a time, per job', () => {
    const turns = new Turns();
    expect(turns.tryTake('a')).toBe(true);
    expect(turns.tryTake('a')).toBe(false);
    expect(turns.tryTake('b')).toBe(true);
    expect([turns.has('a'), turns.has('c')]).toEqual([true, false]);
    turns.give('a');
    expect(turns.has('a')).toBe(false);
    expect(turns.tryTake('a')).toBe(true);
  });

  it('order those who wait, none of them together', async () => {
    const turns = new Turns();
    const events: string[] = [];
    const inTurn = async (name: string) => {
      await turns.take('job');
      events.push(`${name} begins`);
      await Promise.resolve();
      events.push(`${name} ends`);
      turns.give('job');
    };
    await Promise.all([inTurn('a'), inTurn('b'), inTurn('c')]);
    expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    expect(turns.has('job')).toBe(false);
  });

  it('tell those who only want to know when they are given back', async () => {
    const turns = new Turns();
    await turns.free('job');
    turns.tryTake('job');
    let free = false;
    const waiting = turns.free('job').then(() => {
      free = true;
    });
    await Promise.resolve();
    expect(free).toBe(false);
    turns.give('job');
    await waiting;
    expect(turns.has('job')).toBe(false);
  });

  it('can be given back without having been taken', () => {
    const turns = new Turns();
    turns.give('job');
    expect(turns.tryTake('job')).toBe(true);
  });
});
