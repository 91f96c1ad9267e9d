import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { subset } from 'semver';
import { expect, it } from 'vitest';
import { root } from './step.mjs';

interface Locked {
  readonly dev?: boolean;
  readonly link?: boolean;
  readonly resolved?: string;
  readonly engines?: { readonly node?: string };
}

const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const lockedBy = (path: string): [string, Locked][] => Object.entries(read(path).packages);
const { engines, overrides } = read('package.json');
const production = lockedBy('package-lock.json').filter(([path, { dev }]) => path !== '' && !dev);

it('every package that users get runs on every Node that Punctual runs on', () => {
  expect(production.length).toBeGreaterThan(20);
  const tooNew = production.filter(([, { engines: own }]) => own?.node && !subset(engines.node, own.node));
  expect(tooNew.map(([path, { engines: own }]) => `${path} wants Node ${own?.node}`)).toEqual([]);
});

it('nothing that users get depends on an override, because overrides do not reach them', () => {
  const names = Object.keys(overrides);
  const overridden = production.filter(([path]) =>
    names.includes(path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
  );
  expect(overridden.map(([path]) => path)).toEqual([]);
});

it.each(['package-lock.json', 'bench/package-lock.json'])('%s names no registry', (path) => {
  const named = lockedBy(path).filter(([, { link, resolved }]) => !link && resolved !== undefined);
  expect(named.map(([name]) => name)).toEqual([]);
});
