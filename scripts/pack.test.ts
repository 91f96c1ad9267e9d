import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder } from '../test/temporary-folder.js';
import { runNpm } from './install.mjs';
import { root } from './step.mjs';

/**
 * The packed product as a user has it. A real installation would need the registry, so the tarball is unpacked beside
 * links to the installed packages, only those for production.
 */

const run = promisify(execFile);
const LARGEST_BYTES = 10_000_000;

let project: string;
let packed: { readonly filename: string; readonly unpackedSize: number; files: { path: string }[] };
const installed = () => join(project, 'node_modules', 'punctual');

beforeAll(async () => {
  project = await temporaryFolder();
  const quiet = ['--loglevel=error', '--no-update-notifier'];
  const { code, output } = await runNpm('pack', root, '--json', '--pack-destination', project, ...quiet);
  expect(code, output).toBe(0);
  // Warnings of npm come before or after the list.
  [packed] = JSON.parse(output.slice(output.indexOf('[\n'), output.lastIndexOf('\n]') + 2));
  await mkdir(installed(), { recursive: true });
  const tarball = join(project, packed.filename);
  await run('tar', ['-xzf', tarball, '-C', installed(), '--strip-components=1']);
  await linkDependencies();
}, 120_000);

afterAll(() => rm(project, { recursive: true, force: true }));

async function linkDependencies(): Promise<void> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'));
  for (const [path, { dev }] of Object.entries<{ dev?: boolean }>(lock.packages)) {
    // What is nested comes along with its parent, and a package for another platform is not there.
    if (dev || path.lastIndexOf('node_modules/') !== 0 || !existsSync(join(root, path))) continue;
    await mkdir(dirname(join(project, path)), { recursive: true });
    await symlink(join(root, path), join(project, path));
  }
}

it('the packed product has what it runs and what its pages link to', async () => {
  const paths = packed.files.map(({ path }) => path);
  const { exports, bin } = JSON.parse(await readFile(join(installed(), 'package.json'), 'utf8'));
  const entries = Object.values<Record<string, string>>(exports).flatMap((entry) => Object.values(entry));
  const wanted = [...entries, ...Object.values<string>(bin), 'LICENSE', 'README.md', 'docs/openapi.json'];
  for (const path of wanted) expect(paths).toContain(posix.normalize(path));
  const missing = [];
  for (const page of paths.filter((path) => path.endsWith('.md'))) {
    const text = await readFile(join(installed(), page), 'utf8');
    for (const [, link] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(link!)) continue;
      const target = posix.join(posix.dirname(page), link!);
      if (!paths.some((path) => path === target || path.startsWith(`${target}/`)))
        missing.push(`${page}: ${link}`);
    }
  }
  expect(missing).toEqual([]);
});

it('the packed product has nothing that only its developers need', () => {
  const folders = new Set(packed.files.map(({ path }) => path.split('/')[0]));
  for (const folder of ['test', 'bench', 'src', 'dashboard', 'node_modules'])
    expect(folders).not.toContain(folder);
  expect(packed.files.map(({ path }) => path).filter((path) => /\.(test|fixture)\./.test(path))).toEqual([]);
  expect(packed.unpackedSize).toBeLessThan(LARGEST_BYTES);
});

it('an installation of the packed product runs, and its modules can be imported', async () => {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const program = join(installed(), 'bin', 'punctual');
  expect((await run(process.execPath, [program, '--version'], { cwd: project })).stdout.trim()).toBe(version);
  const source = `
    const { connect, task } = await import('punctual');
    const { startNode } = await import('punctual/server');
    console.log([connect, task, startNode].map((each) => typeof each).join());`;
  const imported = await run(process.execPath, ['--input-type=module', '-e', source], { cwd: project });
  expect(imported.stdout.trim()).toBe('function,function,function');
}, 60_000);

it('npm can run its preparation where the packed product was unpacked, and it does nothing', async () => {
  const script = join(installed(), 'scripts', 'prepare.mjs');
  const { stdout, stderr } = await run(process.execPath, [script], { cwd: installed() });
  expect(stdout + stderr).toBe('');
}, 60_000);
