import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FENCES } from '../src/core/test-switches.js';
import { FENCE_PROOFS } from './fence-proofs.js';

it.each(FENCES)('the fence %s is proven by its removal', (fence) => {
  const proof = readFileSync(new URL(`../${FENCE_PROOFS[fence]}`, import.meta.url), 'utf8');
  expect(proof).toMatch(new RegExp(`'${fence}'|\\b${fence}: \\{`));
});
