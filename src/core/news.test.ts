import { describe, expect, it, vi } from 'vitest';
import { News } from './news.js';

describe('news', () => {
  it('reach everybody who waits, and nobody who comes later', async () => {
    const news = new News();
    const heard: string[] = [];
    const both = Promise.all(
      ['first', 'second'].map((name) => news.next(60_000).then(() => heard.push(name))),
    );
    news.tell();
    const late = news.next(60_000).then(() => heard.push('late'));
    await both;
    expect(heard).toEqual(['first', 'second']);
    news.tell();
    await late;
    expect(heard).toEqual(['first', 'second', 'late']);
  });

  it('are not waited for longer than was said, and leave no timer behind', async () => {
    vi.useFakeTimers();
    try {
      const news = new News();
      const patience = news.next(50);
      await vi.advanceTimersByTimeAsync(50);
      await patience;
      const told = news.next(50);
      news.tell();
      await told;
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
