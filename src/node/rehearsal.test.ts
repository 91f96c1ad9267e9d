import { expect, it } from 'vitest';
import { RarerTries } from './rehearsal.js';

it('what fails is tried ever less often, but never less than once in 61 looks', () => {
  const tries = new RarerTries();
  const triedAt: number[] = [];
  for (let look = 0; look < 300; look++) {
    if (!tries.isDue()) continue;
    triedAt.push(look);
    tries.failed();
  }
  expect(triedAt.map((look, i) => look - (triedAt[i - 1] ?? -1))).toEqual([
    1, 1, 2, 4, 8, 16, 32, 61, 61, 61,
  ]);
});
