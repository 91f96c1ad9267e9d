import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Execution, MAX_EXECUTION_BYTES, withinBounds } from './execution.js';

it('an execution takes at most its bound, and keeps the end of what was printed', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '\0', '🎉', '\n'), minLength: 0, maxLength: 9_000 });
  fc.assert(
    fc.property(text, text, (stdout, stderr) => {
      const given: Execution = { isolation: 'none', limits: {}, exitCode: 1, stdout, stderr };
      const kept = withinBounds(given);
      expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThanOrEqual(MAX_EXECUTION_BYTES);
      expect(kept).toMatchObject({ isolation: 'none', exitCode: 1 });
      if (kept.stdout !== undefined) expect(stdout.endsWith(kept.stdout)).toBe(true);
      if (Buffer.byteLength(JSON.stringify(given)) <= MAX_EXECUTION_BYTES) expect(kept).toEqual(given);
    }),
    { numRuns: 50 },
  );
});
