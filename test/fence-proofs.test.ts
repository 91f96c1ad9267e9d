import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FENCES } from '../src/host/test-switches.js';
import { FENCE_PROOFS } from './fence-proofs.js';

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const FAULTS = read('docs/faults.md');

it.each(FENCES)('the fence %s is proven by its removal, and documented with its proof', (fence) => {
  expect(read(FENCE_PROOFS[fence])).toMatch(new RegExp(`'${fence}'|\\b${fence}: \\{`));
  expect(FAULTS.split('\n').find((line) => line.startsWith(`| \`${fence}\` |`))).toContain(
    FENCE_PROOFS[fence],
  );
});

it('the documentation names only tests that are there', () => {
  const named = FAULTS.match(/`test\/[^`]*\.ts`/g) ?? [];
  const missing = named
    .map((path) => path.slice(1, -1))
    .filter((path) => !existsSync(new URL(`../${path}`, import.meta.url)));
  expect(named.length).toBeGreaterThan(20);
  expect(missing).toEqual([]);
});
