import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { DASHBOARD_FOLDER, readPageFiles } from '../../src/host/page-files.js';

const LARGEST_FIRST_LOAD = 100_000;

const files = readPageFiles(DASHBOARD_FOLDER)!;
const textOf = (path: string) => files.get(path)!.bytes.toString('utf8');
const sizeOf = (path: string) => gzipSync(files.get(path)!.bytes).length;

/** What a file has the browser load at once, and what it has it load later, by the names in its text. */
function loadedBy(path: string, pattern: RegExp): string[] {
  return [...textOf(path).matchAll(pattern)]
    .map(([, name]) => `assets/${name}`)
    .filter((name) => files.has(name));
}

it('the first load of the page is small, with Home and everything that it draws with', () => {
  const shell = loadedBy('index.html', /assets\/([\w.-]+)/g);
  const home = [...files.keys()].filter((path) =>
    /^assets\/(home-screen|uPlot|chart)[\w.-]*\.(js|css)$/.test(path),
  );
  expect(home.length).toBeGreaterThan(0);
  const all = new Set([...shell, ...home]);
  for (const path of all) {
    if (path.endsWith('.js')) for (const next of loadedBy(path, /from\s*"\.\/([\w.-]+)"/g)) all.add(next);
  }
  const total = [...all].reduce((sum, path) => sum + sizeOf(path), sizeOf('index.html'));
  expect(total).toBeGreaterThan(15_000);
  expect(total).toBeLessThan(LARGEST_FIRST_LOAD);
});

it('every script and style is served compressed', () => {
  const plain = [...files].filter(
    ([path, { compressed }]) =>
      /\.(js|css)$/.test(path) && sizeOf(path) < files.get(path)!.bytes.length && compressed.size < 2,
  );
  expect(plain.map(([path]) => path)).toEqual([]);
});
