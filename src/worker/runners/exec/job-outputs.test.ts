import { mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JobLog } from '../../../core/task.js';
import type { Assignment } from '../../../core/wire.js';
import { sendOutputs } from './job-outputs.js';

async function send(
  fill: (folder: string) => void,
  onFile: (folder: string) => void = () => undefined,
): Promise<{ names: string[]; warnings: string[]; texts: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-outputs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  fill(folder);
  const names: string[] = [];
  const warnings: string[] = [];
  const texts: string[] = [];
  const gateway = {
    triesAtOnce: false,
    output: async (_job: string, _token: unknown, { name, bytes }: { name: string; bytes: Readable }) => {
      names.push(name);
      texts.push(await text(bytes));
      onFile(folder);
    },
  };
  await sendOutputs({
    ...{ gateway: gateway as never, folder, user: null, signal: new AbortController().signal },
    assignment: { jobId: 'job', fence: 1 } as unknown as Assignment,
    log: { warn: (text: string) => warnings.push(text) } as unknown as JobLog,
  });
  return { names, warnings, texts };
}

describe('what a program leaves in output', () => {
  it('is sent by its names, up to a number of files', async () => {
    const some = await send((folder) => {
      mkdirSync(join(folder, 'b'));
      for (const name of ['c', 'a', 'b/d']) writeFileSync(join(folder, name), name);
    });
    expect(some).toEqual({ names: ['a', 'b/d', 'c'], warnings: [], texts: ['a', 'b/d', 'c'] });
    const many = await send((folder) => {
      for (let i = 0; i < 101; i++) writeFileSync(join(folder, `${1_000 + i}`), '');
    });
    expect(many.names).toHaveLength(100);
    expect(many.warnings).toEqual([expect.stringMatching(/More than 100 files/)]);
  });

  it('is looked at up to a number of entries, because there may be more than fit into memory', async () => {
    const { names, warnings } = await send((folder) => {
      // Folders are no files, so that the number of files does not end it.
      for (let i = 0; i < 10_001; i++) mkdirSync(join(folder, String(i)));
    });
    expect(names).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/More than 10000 entries/)]);
  });

  /** A folder of somebody else, with a file in it. */
  function outside(): string {
    const path = mkdtempSync(join(tmpdir(), 'punctual-outside-'));
    onTestFinished(() => rmSync(path, { recursive: true, force: true }));
    for (const name of ['id_rsa', 'z']) writeFileSync(join(path, name), 'of the worker');
    return path;
  }

  it('is nothing behind a link that was put in its place', async () => {
    const elsewhere = outside();
    const { names } = await send((folder) => {
      rmdirSync(folder);
      symlinkSync(elsewhere, folder);
    });
    expect(names).toEqual([]);
    const file = await send((folder) => {
      rmdirSync(folder);
      writeFileSync(folder, 'no folder');
    });
    expect(file).toMatchObject({ names: [], warnings: [] });
  });

  it('is what was there at first, also if a link is put in its place while it is sent', async () => {
    const elsewhere = outside();
    const fill = (folder: string) => {
      mkdirSync(join(folder, 'b'));
      for (const name of ['a', 'b/c', 'id_rsa']) writeFileSync(join(folder, name), name);
    };
    const moved: string[] = [];
    const { texts } = await send(fill, (folder) => {
      if (moved.length > 0) return;
      moved.push(`${folder}-moved`);
      renameSync(folder, moved[0]!);
      symlinkSync(elsewhere, folder);
      // A folder that was seen, too.
      rmSync(join(moved[0]!, 'b'), { recursive: true });
      symlinkSync(elsewhere, join(moved[0]!, 'b'));
    });
    rmSync(moved[0]!, { recursive: true });
    if (process.platform === 'linux') expect(texts).toEqual(['a', 'id_rsa']);
  });
});
