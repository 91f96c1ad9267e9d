import { describe, expect, it } from 'vitest';
import { outputsOf } from './build.mjs';

describe('building', () => {
  it('knows what each source becomes, and that tests become nothing', () => {
    expect(outputsOf('core/job.ts')).toEqual(['core/job.js', 'core/job.js.map', 'core/job.d.ts']);
    expect(outputsOf('store/migrations/0001-jobs.sql')).toEqual(['store/migrations/0001-jobs.sql']);
    expect(outputsOf('core/job.test.ts')).toEqual([]);
    expect(outputsOf('client/task.test-d.ts')).toEqual([]);
  });
});
