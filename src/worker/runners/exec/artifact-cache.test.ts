import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { handMadeElf } from '../../../../test/programs/hand-made-elf.js';
import type { ArtifactAnswer } from '../../../core/wire.js';
import { ArtifactCache } from './artifact-cache.js';

const NEVER = new AbortController().signal;
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

function answerFor(bytes: Buffer, change: Partial<ArtifactAnswer> = {}): ArtifactAnswer {
  return {
    ...{ id: 'a', sha256: sha256(bytes), size: bytes.length, kind: 'elf', machine: 'x64' },
    ...{ url: '', headers: {}, expiresAt: '', ...change },
  };
}

function setUp({ maxBytes = 1_000_000, folder = '', allowScripts = false } = {}) {
  const own = folder === '' ? mkdtempSync(join(tmpdir(), 'punctual-cache-')) : folder;
  if (folder === '') onTestFinished(() => rmSync(own, { recursive: true, force: true }));
  const sent = new Map<string, Buffer>();
  const asked: string[] = [];
  const cache = new ArtifactCache({
    ...{ folder: own, maxBytes, architecture: 'x64', allowScripts },
    fetchBytes: async ({ sha256: hash }) => {
      asked.push(hash);
      const bytes = sent.get(hash)!;
      return (async function* () {
        for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100);
      })();
    },
  });
  const take = (bytes: Buffer, change?: Partial<ArtifactAnswer>) => {
    if (!sent.has(sha256(bytes))) sent.set(sha256(bytes), bytes);
    return cache.take(answerFor(bytes, change), NEVER);
  };
  return { cache, take, sent, asked, folder: own };
}

const elf = (exitCode: number) => handMadeElf('x64', exitCode);

describe('the cache of binaries', () => {
  it('downloads each once, however many ask at the same time', async () => {
    const { take, asked } = setUp();
    await Promise.all(Array.from({ length: 5 }, () => take(elf(1))));
    await take(elf(1));
    expect(asked).toHaveLength(1);
  });

  it('is the same for the next worker, which checks what it finds', async () => {
    const { take, folder } = setUp();
    const { path } = await take(elf(1));
    writeFileSync(join(folder, `${'0'.repeat(64)}.draft`), 'half');
    const next = setUp({ folder });
    await next.cache.open();
    await next.take(elf(1));
    expect(next.asked).toEqual([]);
    expect(readdirSync(folder)).toHaveLength(1);
    writeFileSync(path, elf(2));
    const third = setUp({ folder });
    await third.take(elf(1));
    expect(third.asked).toHaveLength(1);
  });

  it('never runs bytes that are others than were uploaded, and keeps none of them', async () => {
    const { take, sent, folder } = setUp();
    sent.set(sha256(elf(1)), Buffer.concat([elf(1).subarray(0, -1), Buffer.from('x')]));
    await expect(take(elf(1))).rejects.toMatchObject({ code: 'ARTIFACT_CORRUPT', retryable: true });
    sent.set(sha256(elf(1)), Buffer.concat([elf(1), Buffer.from('x')]));
    await expect(take(elf(1))).rejects.toMatchObject({ code: 'ARTIFACT_UNAVAILABLE' });
    sent.set(sha256(elf(1)), elf(1).subarray(0, 50));
    await expect(take(elf(1))).rejects.toMatchObject({ code: 'ARTIFACT_UNAVAILABLE' });
    expect(readdirSync(folder)).toEqual([]);
    sent.set(sha256(elf(1)), elf(1));
    await take(elf(1));
  });

  it('makes room by what was not used for the longest time, and never by what runs', async () => {
    const bytes = elf(1).length;
    const { take, asked } = setUp({ maxBytes: 2 * bytes });
    const first = await take(elf(1));
    (await take(elf(2))).giveBack();
    (await take(elf(3))).giveBack();
    await take(elf(1));
    expect(asked).toHaveLength(3);
    await take(elf(2));
    expect(asked).toHaveLength(4);
    first.giveBack();
  });

  it('gives out no file that it is about to remove', async () => {
    const { take, folder } = setUp({ maxBytes: 1 });
    for (let i = 0; i < 100; i++) {
      const { path, giveBack } = await take(elf(1));
      expect(readdirSync(folder)).toEqual([basename(path)]);
      giveBack();
    }
  });

  it.each([
    ['a text', Buffer.from('echo hacked\n'), {}],
    ['a binary for another processor', handMadeElf('arm64', 0), {}],
    ['a file', elf(1), { kind: 'file' as const }],
    ['a script', Buffer.from('#!/bin/sh\n'), { kind: 'script' as const }],
  ])('does not give out %s', async (_, bytes, change) => {
    const { take } = setUp();
    await expect(take(bytes, change)).rejects.toMatchObject({ code: 'NOT_RUNNABLE', retryable: false });
  });

  it('gives out a script where scripts are allowed', async () => {
    const { take } = setUp({ allowScripts: true });
    const { path } = await take(Buffer.from('#!/bin/sh\n'), { kind: 'script' });
    expect(readFileSync(path, 'utf8')).toBe('#!/bin/sh\n');
  });
});
