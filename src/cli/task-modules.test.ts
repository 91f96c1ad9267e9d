import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadTasks } from './task-modules.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-tasks-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const TASK = (name: string) => `{ name: '${name}', defaults: {}, schema: null, handler: () => 1 }`;

it('collects every exported task of every module', async () => {
  writeFileSync(join(folder, 'a.mjs'), `export const a = ${TASK('a')}; export const other = 5;`);
  writeFileSync(join(folder, 'b.mjs'), `export default ${TASK('b')};`);
  const tasks = await loadTasks(folder, ['a.mjs', './b.mjs']);
  expect(tasks.map((task) => task.name)).toEqual(['a', 'b']);
});

it('refuses modules that cannot be loaded, hold no task, or clash', async () => {
  writeFileSync(join(folder, 'empty.mjs'), 'export const nothing = 1;');
  writeFileSync(join(folder, 'a.mjs'), `export const a = ${TASK('same')};`);
  writeFileSync(join(folder, 'b.mjs'), `export const b = ${TASK('same')};`);
  await expect(loadTasks(folder, ['missing.mjs'])).rejects.toMatchObject({ code: 'USAGE' });
  await expect(loadTasks(folder, ['empty.mjs'])).rejects.toThrow('exports no task');
  await expect(loadTasks(folder, ['a.mjs', 'b.mjs'])).rejects.toThrow('exported twice');
});

it('says what reads the TypeScript that Node cannot strip', async () => {
  // As Node 22.18 and newer says it; older ones read no TypeScript.
  const said = 'TypeScript enum is not supported in strip-only mode';
  writeFileSync(join(folder, 'a.mjs'), `throw new SyntaxError('${said}');`);
  await expect(loadTasks(folder, ['a.mjs'])).rejects.toThrow(`${said}. Install tsx`);
});

it('finds what a CommonJS module exports under `default` only', async () => {
  writeFileSync(join(folder, 'a.mjs'), `export default { a: ${TASK('a')}, other: 5 };`);
  expect((await loadTasks(folder, ['a.mjs'])).map((task) => task.name)).toEqual(['a']);
});
