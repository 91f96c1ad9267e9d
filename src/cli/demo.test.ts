import { expect, it } from 'vitest';
import { demoSubmissions, standingOf, standingText } from './demo.js';

it('submits a hundred naps of 1 to 20 s with keys of their own', () => {
  const jobs = demoSubmissions('show');
  const seconds = jobs.map((job) => (job.payload as { seconds: number }).seconds);
  expect(jobs).toHaveLength(100);
  expect(new Set(jobs.map((job) => job.key)).size).toBe(100);
  expect(Math.min(...seconds)).toBe(1);
  expect(Math.max(...seconds)).toBe(20);
});

it('counts where jobs stand', () => {
  const standing = standingOf(['succeeded', 'running', 'pending', 'blocked', 'failed', 'cancelled']);
  expect(standing).toEqual({ total: 6, done: 1, running: 1, waiting: 2, failed: 2 });
  expect(standingText(standing)).toBe('1 of 6 done, 1 running, 2 waiting, 2 failed');
});
