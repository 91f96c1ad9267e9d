import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../temporary-folder.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');

/** The modules that the declarations of the package import, from its entries on, each with its importer. */
function importsOf(entries: readonly string[]): { own: Set<string>; foreign: string[] } {
  const own = new Set<string>();
  const foreign: string[] = [];
  const visit = (file: string) => {
    if (own.has(file)) return;
    own.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, specifier = ''] of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]/g)) {
      if (specifier.startsWith('.')) visit(join(dirname(file), specifier.replace(/\.js$/, '.d.ts')));
      else foreign.push(`${specifier} in ${file.slice(DIST.length + 1)}`);
    }
    for (const [, name] of text.matchAll(/\/\/\/ <reference types="([^"]+)"/g)) foreign.push(name!);
  };
  for (const entry of entries) visit(join(DIST, entry));
  return { own, foreign };
}

it('the declarations of the package need no other package: a program compiles none of our dependencies', () => {
  const { own, foreign } = importsOf(['index.d.ts', 'server.d.ts']);
  expect(foreign).toEqual([]);
  // The walk has come somewhere.
  expect([...own].map((file) => file.slice(DIST.length + 1))).toEqual(
    expect.arrayContaining([
      'core/job.d.ts',
      'core/wire.d.ts',
      'worker/worker-runtime.d.ts',
      'node/embed.d.ts',
    ]),
  );
  expect([...own].filter((file) => file.includes('schemas'))).toEqual([]);
});

/** Wrong calls; the compiler must complain right behind each mark, and nowhere else. */
const WRONG = `
import { connect, type Duration, type Rate, schedule, task } from 'punctual';

const punctual = connect();
const greet = task('greet', { timeout: '2m' }, (input: { name: string; age?: number }) => input.name);
const tick = task('tick', () => 1);
const schema = {
  '~standard': {
    version: 1,
    vendor: 'own',
    validate: (value: unknown) => ({ value: value as { n: number } }),
    types: undefined as unknown as { input: { n: string }; output: { n: number } },
  },
} as const;
const checked = task('checked', { input: schema }, (input) => input.n.toFixed());

// Inputs.
void punctual.submit(greet, { /*@*/name: 1 });
void punctual.submit(greet, { name: 'Ada', /*@*/agee: 3 });
void punctual.submit(greet, /*@*/{});
void punctual.submit(greet, /*@*/'Ada');
void punctual./*@*/submit(greet);
void punctual.submit(checked, { /*@*/n: 1 });
void punctual.submit(/*@*/42);
void punctual.submitMany(greet, /*@*/[{ name: 2 }]);

// Options of a submission.
void punctual.submit(greet, { name: 'Ada' }, { /*@*/dealy: '5s' });
void punctual.submit(greet, { name: 'Ada' }, { /*@*/delay: '5 seconds' });
void punctual.submit(greet, { name: 'Ada' }, { /*@*/delay: 5 });
void punctual.submit(greet, { name: 'Ada' }, { /*@*/delivery: 'exactly-once' });
void punctual.submit(greet, { name: 'Ada' }, { retry: { /*@*/maxAttempts: 'four' } });
void punctual.submit(greet, { name: 'Ada' }, { retry: { backoff: { /*@*/base: 'two seconds' } } });
void punctual.submit('by-name', 1, { /*@*/priority: 'high' });
void punctual.submitMany(greet, [{ name: 'Ada' }], { /*@*/queue: 1 });

// Options of a task.
task('a', { /*@*/timeout: '2 minutes' }, () => 1);
task('a', { /*@*/timeoutt: '2m' }, () => 1);
task('a', { retry: { /*@*/attempts: 2 } }, () => 1);
task('a', { input: schema, /*@*/timeout: '2 minutes' }, (input) => input.n);
task('a', { /*@*/input: schema }, (input: { n: string }) => input.n);

// Schedules.
void punctual.schedule(greet, { every: '1h', input: { /*@*/name: 1 } });
void punctual.schedule(greet, /*@*/{ every: '1h' });
void punctual.schedule(tick, { every: '1h', /*@*/overlap: 'maybe' });
void punctual.schedule(tick, { /*@*/every: '1 hour' });
void punctual.schedule(tick, { cron: '0 * * * *', /*@*/jitter: 'some' });
schedule(greet, { every: '1h', input: { /*@*/name: 1 } });
void punctual.schedules([schedule(tick, { every: '1h' })], { /*@*/prun: true });

// Rates.
void punctual.limitQueue('mail', { /*@*/rate: '100 per second' });
punctual.worker([greet], { /*@*/rate: '100' });
punctual.worker([greet], { rate: { limit: 1, /*@*/per: 'second' } });

// What is right.
const duration: Duration = '1.5h';
const rate: Rate = '100/1s';
void punctual.submit(greet, { name: 'Ada' }, { delay: duration });
void punctual.submit<{ total: number }>('by-name').then((job) => job.result()).then((result) => result.total);
void punctual.limitQueue('mail', { rate });
void punctual.submit(checked, { n: '1' }).then((job) => job.result()).then((text) => text.length);
`;

it('the compiler complains about the field that is wrong, not about the task', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'wrong.ts'), WRONG);
  const compilerOptions = {
    ...{
      target: 'ES2022',
      lib: ['ES2023', 'DOM'],
      module: 'NodeNext',
      strict: true,
      noEmit: true,
      types: [],
    },
    paths: { punctual: [join(DIST, 'index.d.ts')] },
  };
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['wrong.ts'] }));
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, stderr } = spawnSync(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
    cwd: folder,
  });
  const found = [...stdout.matchAll(/^(\S+)\((\d+),(\d+)\): error/gm)].map(
    ([, file, line, column]) => `${file} ${line}:${column}`,
  );
  const expected = WRONG.split('\n').flatMap((line, i) => {
    const at = line.indexOf('/*@*/');
    return at < 0 ? [] : [`wrong.ts ${i + 1}:${at + '/*@*/'.length + 1}`];
  });
  expect(found, stdout + stderr).toEqual(expected);
});
