import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JobLog } from '../../../core/task.js';
import type { Assignment } from '../../../core/wire.js';
import { sendOutputs } from './job-outputs.js';

async function send(fill: (folder: string) => void): Promise<{ names: string[]; warnings: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-outputs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  fill(folder);
  const names: string[] = [];
  const warnings: string[] = [];
  const gateway = {
    triesAtOnce: false,
    output: async (_job: string, _token: unknown, { name }: { readonly name: string }) => {
      names.push(name);
    },
  };
  await sendOutputs({
    ...{ gateway: gateway as never, folder, user: null, signal: new AbortController().signal },
    assignment: { jobId: 'job', fence: 1 } as unknown as Assignment,
    log: { warn: (text: string) => warnings.push(text) } as unknown as JobLog,
  });
  return { names, warnings };
}

describe('what a program leaves in output', () => {
  it('is sent by its names, up to a number of files', async () => {
    const some = await send((folder) => {
      mkdirSync(join(folder, 'b'));
      for (const name of ['c', 'a', 'b/d']) writeFileSync(join(folder, name), name);
    });
    expect(some).toEqual({ names: ['a', 'b/d', 'c'], warnings: [] });
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
});
