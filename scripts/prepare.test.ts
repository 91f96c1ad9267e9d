import { expect, it } from 'vitest';
import { needsPackages } from './prepare.mjs';
import { root } from './step.mjs';

it('installs packages where npm packs the clone or another project installs it, and nowhere else', () => {
  const elsewhere = `${root}-beside`;
  expect(needsPackages({ npm_command: 'pack', INIT_CWD: root })).toBe(true);
  expect(needsPackages({ npm_command: 'publish', INIT_CWD: root })).toBe(true);
  expect(needsPackages({ npm_command: 'install', INIT_CWD: elsewhere })).toBe(true);
  expect(needsPackages({ npm_command: 'install', INIT_CWD: '/' })).toBe(true);
  // Whoever runs `npm ci --omit=dev` here must not get the packages for development after all.
  expect(needsPackages({ npm_command: 'ci', INIT_CWD: root })).toBe(false);
  expect(needsPackages({ npm_command: 'install', INIT_CWD: `${root}/docs` })).toBe(false);
  expect(needsPackages({})).toBe(false);
});
