import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { disownPostmasterFile, parsePostmasterFile } from './postmaster-file.js';

const RUNNING = '4711\n/data/postgres\n1790000000\n25432\n\n127.0.0.1\n  1234567    890123\nready   \n';

let pgdata: string;

beforeEach(async () => {
  pgdata = await mkdtemp(join(tmpdir(), 'punctual-postmaster-'));
});

afterEach(() => rm(pgdata, { recursive: true, force: true }));

describe('the file of a running server', () => {
  it('tells process, port and whether connections are taken', () => {
    expect(parsePostmasterFile(RUNNING)).toEqual({ pid: 4711, port: 25_432, ready: true });
    expect(parsePostmasterFile(RUNNING.replace('ready   ', 'starting'))).toMatchObject({ ready: false });
  });

  it('may be written half, or by a server in single-user mode', () => {
    expect(parsePostmasterFile('4711\n/data\n')).toEqual({ pid: 4711, port: null, ready: false });
    expect(parsePostmasterFile('-4711\n/data\n')).toMatchObject({ pid: 4711 });
    expect(parsePostmasterFile('')).toBeNull();
    expect(parsePostmasterFile('\0\0\0')).toBeNull();
  });

  it('keeps the shared memory on record when it is disowned', async () => {
    const path = join(pgdata, 'postmaster.pid');
    await writeFile(path, RUNNING);
    await disownPostmasterFile(pgdata);
    expect(await readFile(path, 'utf8')).toBe(RUNNING.replace('4711', '2147483647'));
  });

  it('is removed when nothing can be read from it', async () => {
    const path = join(pgdata, 'postmaster.pid');
    await disownPostmasterFile(pgdata);
    await writeFile(path, '');
    await disownPostmasterFile(pgdata);
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
