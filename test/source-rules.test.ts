import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  impureCore,
  intervals,
  loadedWith,
  notifications,
  type SourceFile,
  spreadArguments,
  strayRequests,
  strayStatements,
  textsAsMarkup,
  wrongDashboardImports,
  wrongImports,
} from './source-rules.js';

const root = fileURLToPath(new URL('../src', import.meta.url));

const sourcesBelow = (folder: string): SourceFile[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(tsx?|sql)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({
      path: relative(folder, path).split(sep).join('/'),
      text: readFileSync(path, 'utf8'),
    }));

const sources = sourcesBelow(root);
const dashboard = sourcesBelow(fileURLToPath(new URL('../dashboard/src', import.meta.url)));

describe('the sources', () => {
  it('are found', () => {
    const paths = sources.map((source) => source.path);
    expect(paths).toContain('core/job.ts');
    expect(paths).toContain('store/migrations/001-places.sql');
  });

  it('import in one direction only', () => {
    expect(wrongImports(sources)).toEqual([]);
  });

  it('keep files, processes and the environment out of core', () => {
    expect(impureCore(sources)).toEqual([]);
  });

  it.each(['index.ts', 'cli/main.ts'])('do not load the schemas with %s, which takes long', (entry) => {
    const loaded = [...loadedWith(sources, entry)];
    expect(loaded).toContain('core/errors.ts');
    expect(loaded.filter((path) => path.startsWith('typebox'))).toEqual([]);
  });

  it('load the code for databases and workers with the commands that need it, and with no other', () => {
    const loaded = [...loadedWith(sources, 'cli/main.ts')];
    expect(loaded).toContain('cli/db-commands.ts');
    const late = /^(pg$|store\/|embedded\/|worker\/runners\/|node\/)/;
    expect(loaded.filter((path) => late.test(path))).toEqual([]);
  });

  it('keep SQL statements in the store', () => {
    expect(strayStatements(sources)).toEqual([]);
  });

  it('have no intervals', () => {
    expect(intervals(sources)).toEqual([]);
  });

  it('neither send nor await notifications of the database', () => {
    expect(notifications(sources)).toEqual([]);
  });

  it('spread no list into the arguments of a call', () => {
    expect(spreadArguments(sources)).toEqual([]);
  });
});

describe('the sources of the dashboard', () => {
  it('are found', () => {
    expect(dashboard.map(({ path }) => path)).toContain('shell/app.tsx');
  });

  it('take nothing from the rest of the repository but types of core', () => {
    expect(wrongDashboardImports(dashboard)).toEqual([]);
  });

  it('make no markup of texts, and ask the API through one client', () => {
    expect(textsAsMarkup(dashboard)).toEqual([]);
    expect(strayRequests(dashboard)).toEqual([]);
  });

  it('have no intervals, and spread no list into the arguments of a call', () => {
    expect(intervals(dashboard)).toEqual([]);
    expect(spreadArguments(dashboard)).toEqual([]);
  });
});

describe('the rules', () => {
  it.each([
    ["import { COUNTERS } from '../../../src/core/wire.js';", 1],
    ["import type { Shard } from '../../../src/api/shard.js';", 1],
    ["import type {\n  Page,\n} from '../../../src/core/wire.js';", 0],
    ["import { get } from '../../api/client.js';", 0],
  ])('know what the dashboard may import: %s', (text, count) => {
    expect(wrongDashboardImports([{ path: 'screens/a/b.tsx', text }])).toHaveLength(count);
  });

  it.each(['element.innerHTML = text;', '<p style="color: red">', 'eval(text)'])('refuse %s', (text) => {
    expect(textsAsMarkup([{ path: 'parts/a.tsx', text }])).toHaveLength(1);
  });

  it('refuse requests beside the client', () => {
    expect(strayRequests([{ path: 'parts/a.tsx', text: "await fetch('/v1/jobs');" }])).toHaveLength(1);
    expect(strayRequests([{ path: 'api/client.ts', text: "await fetch('/v1/jobs');" }])).toEqual([]);
  });

  it('follow what is loaded, not what is a type or comes later', () => {
    const files = [
      {
        path: 'a.ts',
        text: "import type { X } from './x.js';\nimport {\n  b,\n} from './b.js';\nimport 'pg';",
      },
      { path: 'b.ts', text: "export { c } from './c/d.js';\nexport const b = () => import('./e.js');" },
    ];
    expect([...loadedWith(files, 'a.ts')]).toEqual(['a.ts', 'b.ts', 'pg', 'c/d.ts']);
  });

  it.each([
    ["import { readFileSync } from 'node:fs';", 1],
    ['const pid = process.pid;', 1],
    ["import { hash } from 'node:crypto';", 0],
    ['// Everybody in the process. Really.', 0],
  ])('find what is impure in core: %s', (text, count) => {
    expect(impureCore([{ path: 'core/job.ts', text }])).toHaveLength(count);
    expect(impureCore([{ path: 'host/job.ts', text }])).toEqual([]);
  });

  it.each([
    ['core/job.ts', "import { query } from '../store/query.js';"],
    ['core/job.ts', "import type { Row } from '../store/row.js';"],
    ['store/a/b.ts', "export { run } from '../../dispatch/run.js';"],
    ['cluster/term.ts', "import {\n  a,\n  b,\n} from '../dispatch/run.js';"],
    ['worker/run.ts', "const { connect } = await import('../client/connect.js');"],
    ['client/connect.ts', "import { run } from '../worker/run.js';"],
    ['embedded/start.ts', "import '../store/migrate.js';"],
    ['node/node.ts', "import { main } from '../cli/main.js';"],
    ['index.ts', "export { startNode } from './node/start-node.js';"],
    ['core/job.ts', "import { thing } from '../../test/thing.js';"],
    ['elsewhere/thing.ts', ''],
  ])('refuse %s with %s', (path, text) => {
    expect(wrongImports([{ path, text }])).toHaveLength(1);
  });

  it.each([
    ['store/jobs.ts', "import type { Job } from '../core/job.js';"],
    ['store/a/b.ts', "import { c } from '../c.js';"],
    ['dispatch/run.ts', "import { term } from '../cluster/term.js';"],
    ['sdk/connect.ts', "import { run } from '../worker/run.js';"],
    ['server.ts', "export { startNode } from './node/start-node.js';"],
    ['core/job.ts', "import { randomBytes } from 'node:crypto';"],
    ['core/job.test.ts', "import { query } from '../store/query.js';"],
  ])('accept %s with %s', (path, text) => {
    expect(wrongImports([{ path, text }])).toEqual([]);
  });

  it.each([
    'errors.push(...found);',
    'const least = Math.min(0, ...jobs.map(runAt));',
    'new Set(...lists);',
    'target.push.apply(target, list);',
    'all.push(...[...list]);',
    'function f(list) { g(...list); }',
  ])('refuse a list among the arguments: %s', (text) => {
    expect(spreadArguments([{ path: 'core/a.ts', text }])).toHaveLength(1);
  });

  it.each([
    'const all = [...a, ...b];',
    'command.argument(...NAME);',
    'parameters.push(null, ...(json ? [1, 2] : []));',
    'const twice = (...args) => run(...args);',
    'const copy = make({ ...input });',
  ])('accept a list whose length is known, and copies: %s', (text) => {
    expect(spreadArguments([{ path: 'core/a.ts', text }])).toEqual([]);
  });

  it('find statements and intervals where they do not belong', () => {
    const text = 'const a = `DELETE FROM jobs WHERE id = $1`;\nsetInterval(run, 5);\n';
    expect(strayStatements([{ path: 'api/jobs.ts', text }])).toHaveLength(1);
    expect(strayStatements([{ path: 'store/jobs.ts', text }])).toEqual([]);
    expect(intervals([{ path: 'store/jobs.ts', text }])).toEqual([expect.stringContaining('jobs.ts:2')]);
  });

  it.each([
    ['store/hint.ts', 'await db.query(`NOTIFY jobs`);'],
    ['store/hint.ts', "await db.query('LISTEN jobs');"],
    ['store/hint.ts', "await db.query('SELECT pg_notify($1, $2)', [channel, id]);"],
    ['store/migrations/900-hint.sql', '  PERFORM pg_notify(channel, id);'],
  ])('refuse %s with %s', (path, text) => {
    expect(notifications([{ path, text }])).toHaveLength(1);
  });
});
