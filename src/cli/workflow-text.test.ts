import { describe, expect, it } from 'vitest';
import type { Workflow } from '../core/workflow.js';
import { criticalPathLine } from './workflow-text.js';

function workflowWith(
  names: readonly string[],
  left = 0,
  ended = 1,
): Pick<Workflow, 'criticalPath' | 'progress'> {
  const steps = names.map((name) => ({
    ...{ name, state: 'succeeded' as const, waitedMs: 0, ranMs: 1, totalMs: 1 },
  }));
  const criticalPath = { totalMs: 1_200, waitedMs: 0, ranMs: 1_200, steps, left };
  return { criticalPath, progress: { steps: names.length, ended, failed: 0 } };
}

describe('the line of a critical path', () => {
  it('names every step where there is room', () => {
    expect(criticalPathLine(workflowWith(['a', 'b', 'c']), 80)).toBe('critical path (1.2s): a → b → c\n');
  });

  it('leaves out names in the middle where there is not, and never is wider than the terminal', () => {
    const names = ['prepare', 'check-links-of-everything', 'upload', 'approve', 'publish'];
    expect(criticalPathLine(workflowWith(names), 80)).toBe(
      'critical path (1.2s): prepare → check-links-of-everything → … → publish\n',
    );
    for (let width = 20; width < 100; width++)
      expect(criticalPathLine(workflowWith(names), width).trimEnd().length).toBeLessThanOrEqual(width);
  });

  it('says that there are more', () => {
    const names = Array.from({ length: 30 }, (_, i) => `s${i}`);
    expect(criticalPathLine(workflowWith(names))).toContain('s9 → … → s20');
    expect(criticalPathLine(workflowWith(['a', 'b'], 5))).toBe('critical path (1.2s): a → … → b\n');
  });

  it('is not there before a step has ended', () => {
    expect(criticalPathLine(workflowWith(['a'], 0, 0))).toBe('');
  });
});
