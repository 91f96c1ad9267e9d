import { describe, expect, it } from 'vitest';
import { parseProcessorTime } from './machine.js';

describe('the time of the processors', () => {
  it('is read from the line of all of them, with what others have stolen', () => {
    const stat = 'cpu  100 2 30 400 5 6 7 50 20 1\ncpu0 50 1 15 200 2 3 3 25 10 0\nintr 12\n';
    expect(parseProcessorTime(stat)).toEqual({ all: 600, stolen: 50 });
  });

  it('is not known where the system does not say', () => {
    expect(parseProcessorTime('intr 12\n')).toBeNull();
  });
});
